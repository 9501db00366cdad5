package main

import "strings"

// treatment is how the result of a function of the standard library depends on the text
// that it is given.
type treatment int

const (
	// unknown: the generator does not know the function. In a package that builds texts
	// this is an error, elsewhere the result is data.
	unknown treatment = iota
	// same: the result is the first argument, except for its ends or its case.
	same
	// contains: the result contains the arguments, or parts of them.
	contains
	// data: the result contains no text of the program.
	data
	// formats: the result is written by a format.
	formats
	// prints: the result is the arguments one after the other.
	prints
	// newError: the result is an error with the text of the argument.
	newError
)

// textFunctions are the functions of the standard library that messages are built with. A
// name that ends with a star is a prefix.
var textFunctions = map[string]treatment{
	"errors.New":    newError,
	"errors.Join":   contains,
	"errors.Unwrap": contains,

	"fmt.Errorf":      formats,
	"fmt.Sprintf":     formats,
	"fmt.Fprintf":     formats,
	"fmt.Appendf":     formats,
	"fmt.Sprint":      prints,
	"fmt.Sprintln":    prints,
	"fmt.Fprint":      prints,
	"fmt.Fprintln":    prints,
	"io.WriteString":  prints,
	"strconv.*":       data,
	"strconv.Quote":   contains,
	"cmp.Or":          contains,
	"maps.*":          contains,
	"slices.*":        contains,
	"strings.Clone":   same,
	"strings.Cut*":    contains,
	"strings.Fields":  contains,
	"strings.Join":    contains,
	"strings.Map":     contains,
	"strings.Repeat":  contains,
	"strings.Replace": contains,
	"strings.Split*":  contains,

	"strings.ReplaceAll":  contains,
	"strings.ToLower":     same,
	"strings.ToUpper":     same,
	"strings.ToValidUTF8": same,
	"strings.Trim":        same,
	"strings.TrimFunc":    same,
	"strings.TrimLeft":    same,
	"strings.TrimPrefix":  same,
	"strings.TrimRight":   same,
	"strings.TrimSpace":   same,
	"strings.TrimSuffix":  same,
}

// textPackages are the packages of the standard library whose only purpose is to build
// texts: a function of theirs that is not listed above stops the generator.
var textPackages = []string{"bytes", "errors", "fmt", "html", "html/template", "regexp", "strings", "text/tabwriter", "text/template"}

func treat(name string) treatment {
	if t, known := textFunctions[name]; known {
		return t
	}
	for prefix, t := range textFunctions {
		if stem, is := strings.CutSuffix(prefix, "*"); is && strings.HasPrefix(name, stem) {
			return t
		}
	}
	return unknown
}
