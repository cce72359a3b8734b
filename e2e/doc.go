// Package e2e holds the tests that run the built rsctl against a real RabbitMQ.
// They have no other code in common than package harness; see also the folders
// rabbit (private nodes), withbroker (a node for a command), demo and bench.
package e2e
