package cli

import "log/slog"

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// logger writes to standard error, as text for people and as JSON for machines.
func (a *app) logger(f runFlags) *slog.Logger {
	opts := &slog.HandlerOptions{Level: levels[f.logLevel.value], ReplaceAttr: readable}
	asText := f.logFormat.value == "text" || f.logFormat.value == "auto" && a.stderr().terminal
	if asText {
		return slog.New(slog.NewTextHandler(a.sys.Err, opts))
	}
	return slog.New(slog.NewJSONHandler(a.sys.Err, opts))
}

// readable writes durations as 1.5s in JSON too, not as nanoseconds.
func readable(_ []string, attr slog.Attr) slog.Attr {
	if attr.Value.Kind() == slog.KindDuration {
		attr.Value = slog.StringValue(attr.Value.Duration().String())
	}
	return attr
}
