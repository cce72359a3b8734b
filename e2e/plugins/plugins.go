// Package plugins holds server plugins that tests need and no package has.
package plugins

import _ "embed"

// DelayedMessageSource is a stand-in for the delayed-message plugin: one Erlang
// module that provides the exchange type x-delayed-message as seen on the wire.
//
//go:embed rsctl_delayed_message.erl
var DelayedMessageSource []byte

// DelayedMessageApp is the application file that lets a server load it.
//
//go:embed rsctl_delayed_message.app
var DelayedMessageApp []byte
