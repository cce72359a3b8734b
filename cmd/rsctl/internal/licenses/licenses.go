// Package licenses holds the licences of everything that is linked into rsctl.
//
// The file is written by "make licenses" from the modules themselves, and a test
// keeps it true: a module that is added or updated without it fails the test.
package licenses

import _ "embed"

// ThirdParty is the text: of the Go standard library, and of each module the
// licence and the notices that go with it.
//
//go:embed THIRD_PARTY_LICENSES
var ThirdParty string
