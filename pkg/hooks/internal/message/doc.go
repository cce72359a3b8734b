// Package message is what all kinds of hooks have in common about messages and
// answers: how a message is written for a handler, and what a handler's words
// mean. Answers are read by one parser and metadata is rendered by one function,
// so that two kinds never differ in what a word means.
package message
