package decision

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestUnitNamesAreValidAndUnique(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,240}[a-z0-9])?`).Draw(t, "job")
		name := UnitName("TFJob", job, types.UID(rapid.String().Draw(t, "uid")))
		if len(job) < 200 && len(validation.IsDNS1123Subdomain(job)) > 0 {
			t.Skip("no name of a job")
		}
		if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 && len(validation.IsDNS1123Subdomain(job)) == 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		if got, known := JobOf("TFJob", name); len(job) < 200 && (got != job || !known) {
			t.Fatalf("the job of unit %s is %q (%t), want %q", name, got, known, job)
		}
	})
	names := map[string]bool{}
	for _, kind := range []string{"Job", "TFJob"} {
		for _, uid := range []types.UID{"1", "2"} {
			names[UnitName(kind, "train", uid)] = true
		}
	}
	if len(names) != 4 {
		t.Errorf("names are %v", names)
	}
	if name := UnitName("TFJob", "train", "1"); !strings.HasPrefix(name, "train-tfjob-") {
		t.Errorf("the name is %s", name)
	}
	for _, other := range []string{"", "mine", "train-job-6b86b273ff", "train-tfjob-6b86b273fg", "train-tfjob_6b86b273ff", "-tfjob-6b86b273ff", UnitName("TFJob", strings.Repeat("a", 253), "1")} {
		if job, known := JobOf("TFJob", other); known {
			t.Errorf("unit %q is of job %q", other, job)
		}
	}
}
