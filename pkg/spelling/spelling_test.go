package spelling_test

import (
	"testing"

	"kube-queue.dev/kube-queue/pkg/spelling"
)

func TestTheNameThatWasMeant(t *testing.T) {
	names := []string{"min", "max", "name", "namespaces", "children", "oversell-rate"}
	for word, want := range map[string]string{
		"mx": "max", "m": "", "mxa": "max", "maxx": "max", "MAX": "max", "Namespaces": "namespaces", "namespace": "namespaces",
		"childern": "children", "chidren": "children", "oversel-rat": "oversell-rate", "oversellrate": "oversell-rate",
		"max": "", "quota": "", "": "", "größe": "", "nam": "name",
	} {
		if got := spelling.Nearest(word, names); got != want {
			t.Errorf("%q: %q was meant, want %q", word, got, want)
		}
	}
	if got := spelling.Nearest("mbx", []string{"max", "mix"}); got != "max" {
		t.Errorf("of two equally near, it is %q", got)
	}
	paths := []string{"company", "company/research", "company/research/vision"}
	for word, want := range map[string]string{"research": "company/research", "research/vision": "company/research/vision", "company/reserch": "company/research", "company": "", "search": ""} {
		if got := spelling.NearestPath(word, paths); got != want {
			t.Errorf("%q: %q was meant, want %q", word, got, want)
		}
	}
	if got := spelling.NearestPath("research", []string{"company-researches", "company-research"}); got != "company-research" {
		t.Errorf("of queues, it is %q", got)
	}
	if got := spelling.Nearest("word", nil); got != "" {
		t.Errorf("of no names, it is %q", got)
	}
}
