package program

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

const flagFeatures = "feature-gates"

// features are the program's feature gates: parts that are new, and can be switched on
// or off for a while. It is the value of their flag: what is set for one gate leaves
// the others as they were set before.
type features struct {
	gate featuregate.MutableVersionedFeatureGate
	set  map[string]bool
}

// newFeatures knows the gates of the logs and the program's own.
func newFeatures(own map[featuregate.Feature]featuregate.FeatureSpec) (*features, error) {
	f := &features{gate: featuregate.NewFeatureGate(), set: map[string]bool{}}
	if err := logsapi.AddFeatureGates(f.gate); err != nil {
		return nil, fmt.Errorf("feature gates of the logs: %w", err)
	}
	if err := f.gate.Add(own); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	return f, nil
}

func (f *features) addFlag(fs *pflag.FlagSet) {
	fs.Var(f, flagFeatures, "Features to switch on or off, as A=true,B=false. Known are "+f.known()+".")
}

// known lists the features with their stages and defaults.
func (f *features) known() string {
	var entries []string
	all := f.gate.GetAll()
	for _, feature := range slices.Sorted(maps.Keys(all)) {
		state := "off"
		if all[feature].Default {
			state = "on"
		}
		entries = append(entries, fmt.Sprintf("%s (%s, %s)", feature, strings.ToLower(string(all[feature].PreRelease)), state))
	}
	return strings.Join(entries, ", ")
}

// String lists what was set.
func (f *features) String() string {
	if f == nil {
		return ""
	}
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(f.set)) {
		entries = append(entries, name+"="+strconv.FormatBool(f.set[name]))
	}
	return strings.Join(entries, ",")
}

// Type of the flag.
func (f *features) Type() string { return "Name=true|false,..." }

// Set takes in some gates. They are switched later, all at once: the gate itself would
// not let the second of two values for all alpha features count.
func (f *features) Set(text string) error {
	known := f.gate.GetAll()
	for entry := range strings.SplitSeq(text, ",") {
		if entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		spec, isKnown := known[featuregate.Feature(name)]
		if !isKnown {
			return fmt.Errorf("unknown feature %q; known are: %s", name, f.known())
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%s must be true or false, not %q", name, value)
		}
		if spec.LockToDefault && on != spec.Default {
			return fmt.Errorf("%s can only be %t", name, spec.Default)
		}
		f.set[name] = on
	}
	return nil
}

func (f *features) apply() error {
	if err := f.gate.SetFromMap(f.set); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	return nil
}
