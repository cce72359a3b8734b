package cli

import (
	"fmt"
	"strings"
)

// writeGitHub writes workflow commands that GitHub shows beside the lines of
// the spec, and the summary as a plain line of the log.
func writeGitHub(a *app, r report) error {
	for _, f := range r.Findings {
		if command, ok := githubCommands[f.level()]; ok {
			a.stdout().println(githubLine(command, f))
		}
	}
	if r.Error != "" {
		a.stdout().println("::error title=rsctl " + r.Command + "::" + githubData(r.Error))
	}
	a.stdout().println(sentence(r))
	return nil
}

var githubCommands = map[level]string{levelNote: "notice", levelWarning: "warning", levelError: "error"}

func githubLine(command string, f finding) string {
	var props []string
	if f.File != "" && f.File != stdinName {
		props = append(props, "file="+githubProperty(f.File))
	}
	if f.Line > 0 {
		props = append(props, fmt.Sprintf("line=%d,col=%d", f.Line, f.Column))
	}
	props = append(props, "title="+githubProperty(f.rule()))
	text := f.message()
	if f.Hint != "" {
		text += "\nhint: " + oneLine(f.Hint)
	}
	return "::" + command + " " + strings.Join(props, ",") + "::" + githubData(text)
}

// githubData and githubProperty escape as the workflow commands ask for.
func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func githubProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
