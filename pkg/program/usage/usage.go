// Package usage formats command line errors in the same way for all programs.
package usage

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"kube-queue.dev/kube-queue/pkg/spelling"
)

// Print prints a command line error, the flag that the user probably meant, and where to find the usage.
func Print(out io.Writer, program string, err error, flags *pflag.FlagSet) {
	fmt.Fprintf(out, "%s: %v\n", program, err)
	if meant := MeantFlag(err, flags); meant != "" {
		fmt.Fprintf(out, "Did you mean --%s?\n", meant)
	}
	fmt.Fprintf(out, "See '%s --help' for usage.\n", program)
}

// IsUnknownFlag reports whether the error is about an unknown flag.
func IsUnknownFlag(err error) bool {
	_, is := errors.AsType[*pflag.NotExistError](err)
	return is
}

// MeantFlag returns the flag that the user probably meant by an unknown one; empty if none is similar.
func MeantFlag(err error, flags *pflag.FlagSet) string {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is || flags == nil {
		return ""
	}
	name := unknown.GetSpecifiedName()
	if short := unknown.GetSpecifiedShortnames(); short != "" { // a flag with one dash
		name = short
		if flags.Lookup(name) != nil {
			return name
		}
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return spelling.Nearest(name, names)
}
