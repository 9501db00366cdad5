package provisioning

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
)

func TestPropertyNamesAreValidAndDiffer(t *testing.T) {
	name := func(most int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			text := rapid.StringMatching(`[a-z0-9]([-.a-z0-9]*[a-z0-9])?`).Draw(t, "text")
			text = strings.Repeat(text, rapid.IntRange(1, 60).Draw(t, "times"))
			return strings.Trim(text[:min(len(text), most)], "-.")
		}).Filter(func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 })
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := unitIn(v1alpha1.PhaseReserved)
		unit.Name = name(253).Draw(t, "unit")
		check := name(63).Draw(t, "check")
		unit.Status.Reservations = rapid.Int32Min(1).Draw(t, "attempt")
		first := RequestName(unit, check)
		if first != RequestName(unit, check) {
			t.Fatal("the name is not always the same")
		}
		content := rapid.String().Draw(t, "content")
		template := templateName(first, content)
		for _, got := range []string{first, template} {
			if faults := validation.IsDNS1123Subdomain(got); len(faults) > 0 {
				t.Fatalf("%s: %v", got, faults)
			}
		}
		if template == templateName(first, content+" ") || template == templateName(first+"x", content) {
			t.Fatal("templates of other requests or contents have the same name")
		}
		unit.Status.Reservations--
		if first == RequestName(unit, check) {
			t.Fatal("two attempts have the same name")
		}
	})
}
