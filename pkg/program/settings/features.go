package settings

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Features are the feature gates of a program. It is the value of their flag: setting one gate leaves the others
// unchanged.
type Features struct {
	gate featuregate.MutableVersionedFeatureGate
	set  map[string]bool
}

// NewFeatures returns the feature gates of the logs and of the program.
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
	set.Group("Features", Setting{Var: f, Flag: "feature-gates", Field: "featureGates", Form: Switches(),
		Help: "Features to enable or disable, for example A=true,B=false. Known features: " + f.known() + "."})
}

// Gate returns the feature gate to query.
func (f *Features) Gate() featuregate.FeatureGate { return f.gate }

// known lists all features with their stages and defaults.
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

// String lists the features that were set.
func (f *Features) String() string {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(f.set)) {
		entries = append(entries, name+"="+strconv.FormatBool(f.set[name]))
	}
	return strings.Join(entries, ",")
}

// Type returns the type of the flag for its help.
func (f *Features) Type() string { return "Name=true|false,..." }

// Set records the gates of one value. Apply sets all of them together, because the gate itself ignores a second value
// of AllAlpha.
func (f *Features) Set(text string) error {
	known := f.gate.GetAll()
	for entry := range strings.SplitSeq(text, ",") {
		if entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		spec, isKnown := known[featuregate.Feature(name)]
		if !isKnown {
			return fmt.Errorf("unknown feature %q; known features: %s", name, f.known())
		}
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("feature %s must be true or false, not %q", name, value)
		}
		if spec.LockToDefault && on != spec.Default {
			return fmt.Errorf("feature %s is locked to %t; remove it from the setting", name, spec.Default)
		}
		f.set[name] = on
	}
	return nil
}

// Apply sets the recorded gates.
func (f *Features) Apply() error {
	if err := f.gate.SetFromMap(f.set); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	return nil
}
