package migration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/harness"
)

// chartValues are the values that the converted setup has.
type chartValues struct {
	EnabledExtensions []string `json:"enabledExtensions"`
	Controller        struct {
		QueueGroupPlugin  string `json:"queueGroupPlugin"`
		StrictPriority    bool   `json:"strictPriority"`
		StrictConsistency bool   `json:"strictConsistency"`
		Config            struct {
			Backoff struct{ Initial, Max string } `json:"backoff"`
		} `json:"config"`
	} `json:"controller"`
}

// The promises are those of the product page of ack-kube-queue, "Use ack-kube-queue to manage AI and machine learning
// workloads", and of its page on ElasticQuotaTrees.
func TestAConvertedSetupOfAckKeepsItsPromises(t *testing.T) {
	sh := newShell(t)
	sh.copy("ack/setup.yaml", "ack", "setup.yaml")
	sh.copy("ack/jobs.yaml", "ack", "jobs.yaml")
	for _, command := range commandsOf(t, "docs/migration/from-ack-kube-queue.md", "kubectl kube-queue convert ") {
		_, report := sh.run(command, 1)
		want := []string{
			"ElasticQuotaTree kube-system/elasticquotatree: spec.root.children[0] (algorithm): attributes: alibabacloud.com/lendlimit",
			"Queue kube-queue/root-algorithm-video: metadata.annotations: kube-queue/max-depth",
		}
		if found := listed(report); !slices.Equal(found, want) {
			t.Errorf("%s lists as without an equivalent:\n%s\nwant\n%s", command, strings.Join(found, "\n"), strings.Join(want, "\n"))
		}
	}
	text, err := os.ReadFile(filepath.Join(sh.folder, "values.yaml"))
	harness.Must(t, err)
	var values chartValues
	harness.Must(t, yaml.UnmarshalStrict(text, &values))
	c := values.Controller
	if !c.StrictConsistency || c.StrictPriority || c.QueueGroupPlugin != "elasticquota" || c.Config.Backoff.Initial != "2s" || c.Config.Backoff.Max != "30s" {
		t.Fatalf("the values are\n%s", text)
	}
	// The chart sets these variables and flags from the values.
	suite.BothWith(t, strings.Join(values.EnabledExtensions, ","), []string{"StrictConsistency=true", "QueueGroupPlugin=" + c.QueueGroupPlugin},
		"--backoff-initial="+c.Config.Backoff.Initial, "--backoff-max="+c.Config.Backoff.Max)
	manifests, objects := sh.split("settings.yaml", "jobs.yaml")
	s := newStory(t, "platform", manifests, objects)
	s.main.WaitForTree()

	// StrictConsistency: when a job ends, the attempts start again with the job of the highest priority, and among
	// these with the oldest. If it still does not fit, a job of a lower priority may run. A label of the job selects
	// its quota.
	s.submit("busy")
	s.starts("busy")
	s.submit("high", "middle", "low")
	s.starts("low")
	s.waits("high", wellknown.ReasonQuotaExceeded, "root/platform")
	s.waits("middle", wellknown.ReasonQuotaExceeded, "root/platform")
	s.finish("busy")
	s.starts("high")
	s.neverReleased("middle")
	s.finish("high")
	s.starts("middle")
	s.usesQuota("middle", "root/platform")
	s.finish("middle", "low")

	// Block (StrictPriority for one queue): only the job at the front is tried, which gives a large job a chance.
	s.submit("front")
	s.starts("front")
	s.submit("large", "small")
	s.waits("large", wellknown.ReasonQuotaExceeded, "root/algorithm/video")
	s.waits("small", wellknown.ReasonNotAtFront, "")
	s.finish("front")
	s.starts("large", "small")
	s.finish("large", "small")

	// kube-queue/max-jobs: no more jobs hold quota below the node.
	s.submit("one", "two")
	s.starts("one", "two")
	s.usesQuota("one", "root/algorithm/text")
	s.submit("three")
	s.waits("three", wellknown.ReasonMaxJobs, "root/algorithm/text")
	s.finish("one")
	s.starts("three")
	s.finish("two", "three")
	s.main.ExpectFree()
}
