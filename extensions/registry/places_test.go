package registry

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/metrics"
	"kube-queue.dev/kube-queue/test/require"
)

// The files written by make generate contain each kind.
func TestEachKindIsHeldGuardedAllowedAndMeasured(t *testing.T) {
	served, enum := servedKinds(t), extensionsEnum(t)
	for _, adapter := range All() {
		kind := adapter.Kind()
		if err := held(kind); err != nil {
			t.Errorf("extension %s is not held: %v", kind.Name, err)
		}
		if !regexp.MustCompile(`'` + regexp.QuoteMeta(kind.Group) + `': \[[^\]]*'` + kind.Kind + `'`).MatchString(served) {
			t.Errorf("extension %s: %s of %s is not in servedKinds of the policy of QueueUnits: %s", kind.Name, kind.Kind, kind.Group, served)
		}
		for _, name := range namesOf(adapter) {
			if !slices.Contains(enum, name) {
				t.Errorf("extension %s is not in the schema of the chart's values: %v", name, enum)
			}
		}
		if got := metrics.Framework(kind.Kind); got != kind.Kind {
			t.Errorf("extension %s: metrics report a %s to be %s", kind.Name, kind.Kind, got)
		}
	}
}

// held looks for the hold policy of a kind in deploy/.
func held(kind framework.Kind) error {
	file := deploy("hold-" + strings.ToLower(kind.Kind))
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var policy struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			MatchConstraints struct {
				ResourceRules []struct{ APIGroups, APIVersions, Resources []string }
			}
		}
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &policy); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if name := "kube-queue-hold-" + strings.ToLower(kind.Kind); policy.Kind != "MutatingAdmissionPolicy" || policy.Metadata.Name != name {
		return fmt.Errorf("%s begins with %s %s", file, policy.Kind, policy.Metadata.Name)
	}
	for _, version := range append([]string{kind.Version}, kind.OlderVersions...) {
		there := false
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			there = there || slices.Contains(rule.APIGroups, kind.Group) && slices.Contains(rule.APIVersions, version) && slices.Contains(rule.Resources, kind.Resource)
		}
		if !there {
			return fmt.Errorf("%s has no rule for %s of %s/%s", file, kind.Resource, kind.Group, version)
		}
	}
	return nil
}

func deploy(policy string) string { return "../../deploy/policies/" + policy + ".yaml" }

func servedKinds(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(deploy("queueunits"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "name: servedKinds\n")
	served, _, ends := strings.Cut(rest, "}")
	if !found || !ends {
		t.Fatal("the policy of QueueUnits has no servedKinds")
	}
	return served
}

func extensionsEnum(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../charts/kube-queue/values.schema.json")
	require.NoError(t, err)
	var schema struct {
		Defs map[string]struct {
			Items struct{ Enum []string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(text, &schema))
	return schema.Defs["extensions"].Items.Enum
}
