package settings

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

// Features are the program's feature gates: parts that are new, and can be switched on
// or off for a while. It is the value of their flag: what is set for one gate leaves
// the others as they were set before.
type Features struct {
	gate featuregate.MutableVersionedFeatureGate
	set  map[string]bool
}

// NewFeatures knows the gates of the logs and the program's own.
func NewFeatures(own map[featuregate.Feature]featuregate.FeatureSpec) (*Features, error) {
	f := &Features{gate: featuregate.NewFeatureGate(), set: map[string]bool{}}
	if err := logsapi.AddFeatureGates(f.gate); err != nil {
		return nil, fmt.Errorf("feature gates of the logs: %w", err)
	}
	if err := f.gate.Add(own); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	return f, nil
}

// Declare adds the setting to the set.
func (f *Features) Declare(set *Set) {
	set.Group("Features", func(fs *pflag.FlagSet) {
		fs.Var(f, flagFeatures, "Features to switch on or off, as A=true,B=false. Known are "+f.known()+".")
	}, Setting{Flag: flagFeatures, Field: "featureGates", Form: Switches})
}

// Gate that the features are switched at.
func (f *Features) Gate() featuregate.FeatureGate { return f.gate }

// known lists the features with their stages and defaults.
func (f *Features) known() string {
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
func (f *Features) String() string {
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
func (f *Features) Type() string { return "Name=true|false,..." }

// Set takes in some gates. They are switched later, all at once: the gate itself would
// not let the second of two values for all alpha features count.
func (f *Features) Set(text string) error {
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

// Apply switches what was set.
func (f *Features) Apply() error {
	if err := f.gate.SetFromMap(f.set); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	return nil
}
