package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	files "kube-queue.dev/kube-queue/examples"
	"kube-queue.dev/kube-queue/extensions/registry"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/docs"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/testmode"
)

// scenes are the pages that need preparation, in a plausible reading order. Those of the kinds are in kinds_test.go.
var scenes = []struct {
	page string
	run  func(*scene)
}{
	{"docs/tasks/give-out-quota.md", giveOutQuota},
	{"README.md", firstJob},
	{"examples/README.md", examples},
	{"docs/tasks/queue-a-job.md", queueAJob},
	{"docs/tasks/see-why-a-job-waits.md", seeWhyAJobWaits},
	{"docs/tasks/stop-a-queue.md", stopAQueue},
	{"docs/tasks/share-gpus-among-teams.md", shareGPUs},
	{"docs/tasks/troubleshoot.md", troubleshoot},
	{"docs/concepts/admission-checks.md", admissionChecks},
	{"docs/tasks/let-production-jobs-go-first.md", letProductionJobsGoFirst},
	{"docs/tasks/limit-run-time.md", limitRunTime},
	{"docs/tasks/create-a-unit-by-hand.md", createAUnitByHand},
	{"docs/tasks/try-a-quota-tree.md", tryAQuotaTree},
	{"docs/tasks/count-gpus.md", countGPUs},
	{"docs/reference/reviews.md", reviews},
	{"docs/reference/reasons.md", reasons},
	{"docs/operations/support.md", support},
}

// inDefault are the pages whose commands are for namespace default, or create namespace research.
var inDefault = []string{"README.md", "docs/tasks/give-out-quota.md", "docs/operations/support.md"}

// One test, because all pages share the programs.
func TestCommandsPrintWhatThePagesShow(t *testing.T) {
	harness.Must(t, os.Symlink(suite.KubectlPath, filepath.Join(programs, "kubectl")))
	env := suite.Env(t, "default")
	var extensions []string
	for _, adapter := range registry.All() {
		extensions = append(extensions, adapter.Kind().Name)
	}
	extensions = append(extensions, "pod")
	pods := filepath.Join(suite.Repository, "deploy", "pods")
	if out, err := suite.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(pods, "rbac"), "-f", filepath.Join(pods, "policies")); err != nil {
		t.Fatal(out, err)
	}
	controller := suite.Replica(t, harness.Controller, 1)
	suite.AnswersReviews(t, controller.Program)
	controller.Start()
	suite.Replica(t, harness.Extensions, 1, "--enabled-extensions="+strings.Join(extensions, ",")).Start()

	for _, scene := range scenes {
		t.Run(name(scene.page), func(t *testing.T) {
			if scene.page != "README.md" {
				testmode.OnlyInTestAll(t, "the commands of README.md run in make test, and what the others show is tested elsewhere")
			}
			part := env.For(t)
			if !slices.Contains(inDefault, scene.page) {
				part = suite.Part(t, pageNamespace)
				part.ApplyAsIs(example(t, "quota-tree.yaml"))
			}
			s := newScene(t, part, scene.page)
			s.controller = controller
			scene.run(s)
		})
	}
	if testing.Short() {
		env.Clean(t.Context()) // while the programs run, because the garbage collector learns of a new CRD only after 30 s
		return
	}
	for _, page := range otherPages(t) {
		t.Run(name(page), func(t *testing.T) {
			newScene(t, suite.Part(t, pageNamespace), page).rest()
		})
	}
	t.Run("kinds", func(t *testing.T) { runKinds(t, env) })
}

// example is a file of examples/.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := files.Files.ReadFile(name)
	harness.Must(t, err)
	return string(text)
}

// name is the name of a page's test.
func name(page string) string {
	return strings.TrimSuffix(filepath.Base(page), ".md")
}

// otherPages are pages without a scene.
func otherPages(t *testing.T) []string {
	t.Helper()
	var others []string
	repository := os.DirFS(suite.Repository)
	for _, pattern := range docs.ClusterPages {
		pages, err := fs.Glob(repository, pattern)
		harness.Must(t, err)
		for _, page := range pages {
			if isKind(page) || hasScene(page) {
				continue
			}
			read, err := docs.ReadPage(repository, page)
			harness.Must(t, err)
			if slices.ContainsFunc(read.Commands, docs.InCluster) {
				others = append(others, page)
			}
		}
	}
	return others
}

func hasScene(page string) bool {
	for _, scene := range scenes {
		if scene.page == page {
			return true
		}
	}
	return false
}

func giveOutQuota(s *scene) {
	s.run("check examples/quota-tree.yaml")
	s.run("create namespace")
	s.run("apply")
	s.run("get -n kube-system elasticquotatree")
	s.run("get -n kube-queue queue")
	research := suite.Part(s.t, pageNamespace)
	research.Apply(fourJobs(s.t))
	s.run("-o yaml")
	tree := example(s.t, "quota-tree.yaml")
	research.ApplyAsIs(strings.Replace(tree, "name: everybody-else", "name: research", 1))
	s.run("get -n kube-system elasticquotatree")
	s.run("describe")
	s.run("apply")
	s.run("get -n kube-system elasticquotatree")
	s.run("get -n kube-queue controllerrevisions")
}

func firstJob(s *scene) {
	i := slices.IndexFunc(s.page.Manifests, func(text string) bool { return strings.Contains(text, "kind: Job") })
	if i < 0 {
		s.t.Fatal("README.md shows no Job")
	}
	s.kubectl("delete", "elasticquotatree", "-n", "kube-system", "--all")
	s.kubectl("delete", "namespace", pageNamespace, "--ignore-not-found", "--wait")
	s.run("create namespace")
	s.run("apply -f examples/quota-tree.yaml")
	s.write("job.yaml", s.page.Manifests[i])
	s.run("create")
	s.WaitForPhase("Job", s.names.InCluster("train-s2vjb"), "Running")
	s.run("create")
	s.run("get queueunits")
	s.run("why")
	finish(s.Env, s.names.InCluster("train-s2vjb"))
	s.run("describe job train-rsswq")
	s.Delete(harness.Jobs, s.names.InCluster("train-rsswq"))
}

// examples/README.md creates namespace research and the tree itself, and is read in its own folder.
func examples(s *scene) {
	s.kubectl("delete", "namespace", pageNamespace, "--wait")
	s.kubectl("delete", "elasticquotatree", "-n", "kube-system", "--all")
	s.folder = filepath.Join(s.folder, "examples")
	s.run("create namespace")
	s.run("apply")
	s.run("apply")
}

func queueAJob(s *scene) {
	s.released = true
	s.run("apply")
	s.run("get")
	s.run("describe")
	s.run("--for=create")
	s.run("startTime")
	s.run("delete")
}

// fourJobs are the jobs of see-why-a-job-waits.md and stop-a-queue.md: two run, one waits for one of them, and one
// can never run.
func fourJobs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(suite.Repository, "examples", "waiting", "jobs.yaml"))
	harness.Must(t, err)
	return string(text)
}

// waitForFourJobs waits until each state that the pages show is reached.
func waitForFourJobs(s *scene) {
	for _, running := range []string{"train-a", "train-b"} {
		s.WaitForPhase("Job", running, "Running")
	}
	s.WaitForReason("Job", "train-c", "MaxJobs")
}

// forget restarts the controller, which otherwise shows when jobs start if enough earlier ones have ended.
func (s *scene) forget() {
	s.controller.Stop()
	s.controller.Start()
}

func seeWhyAJobWaits(s *scene) {
	s.forget()
	s.run("apply")
	waitForFourJobs(s)
	s.rest()
}

func reviews(s *scene) {
	s.Apply(fourJobs(s.t))
	waitForFourJobs(s)
	s.run("get -n research qu")
	s.write("why.yaml", s.names.InCluster(s.page.Manifests[0]))
	s.run("why.yaml")
}

func stopAQueue(s *scene) {
	s.released = true
	s.Apply(fourJobs(s.t))
	waitForFourJobs(s)
	s.run("get -n kube-queue queue")
	s.run("Hold")
	s.run("get -n kube-queue queue")
	s.run("get -n research qu")
	s.run("Drain")
	s.run("get -n research job,qu")
	s.run("describe")
	s.run("None")
	s.run("get -n research job,qu")
}

// Team speech borrows, and a job of team vision gets its guarantee back.
func shareGPUs(s *scene) {
	speech, vision := suite.Part(s.t, "speech"), suite.Part(s.t, "vision")
	s.run("quota-tree.yaml")
	s.run("speech.yaml")
	for _, name := range []string{"asr-1", "asr-2", "asr-3"} {
		speech.WaitForPhase("Job", name, "Running")
	}
	s.run("tree")
	s.run("vision.yaml")
	vision.WaitForPhase("Job", "detect", "Running")
	speech.WaitForReason("Job", "asr-3", "QuotaExceeded")
	s.rest()
}

// troubleshoot creates the state of each section before its commands run.
func troubleshoot(s *scene) {
	s.forget()
	const mark = `scheduling.x-k8s.io/suspend: "true"`
	s.Apply(strings.Replace(job("typo", "100m", ""), mark, strings.Replace(mark, "true", "True", 1), 1))
	s.WaitForEvent("typo", "NotQueued")
	s.run("why -n research typo")

	s.Apply(strings.Replace(job("early", "100m", ""), mark, "", 1))
	harness.Eventually(s.t, time.Minute, "early runs", func() (bool, string) {
		active, _, _ := unstructured.NestedInt64(s.Object(harness.Jobs, "early").Object, "status", "active")
		return active > 0, "it has no active pod"
	})
	s.run("why -n research early")

	podsBeforeTheRelease(s)

	s.Apply(fourJobs(s.t))
	waitForFourJobs(s)
	s.run("why -n research train-c")
	deleteFourJobs(s)

	s.controller.Stop()
	s.Apply(job("lonely", "1", ""))
	s.run("get -n research events")
	s.controller.Start()
	s.WaitForPhase("Job", "lonely", "Running")
	s.Delete(harness.Jobs, "lonely")

	// A node has 8 cpu.
	s.Apply(job("no-node", "9", ""))
	s.WaitForPhase("Job", "no-node", "Dequeued")
	harness.Eventually(s.t, time.Minute, "the unit says that its pod has no node", func() (bool, string) {
		unit := s.Unit("Job", "no-node")
		return apimeta.IsStatusConditionFalse(unit.Status.Conditions, wellknown.ConditionPodsScheduled), fmt.Sprint(unit.Status.Conditions)
	})
	s.run("why -n research no-node")
	s.run("get -n research qu")
	s.Delete(harness.Jobs, "no-node")

	s.Apply(job("stopped", "1", ""))
	s.WaitForPhase("Job", "stopped", "Running")
	s.Patch(harness.Jobs, "stopped", `{"spec":{"suspend":true}}`)
	s.WaitForReason("Job", "stopped", "SuspendedByUser")
	s.run("why -n research stopped")
	s.Delete(harness.Jobs, "stopped")
	s.run("get namespace")

	s.ApplyAsIs(strings.Replace(example(s.t, "quota-tree.yaml"), "name: elasticquotatree", "name: new-tree", 1))
	s.run("get elasticquotatree")
	s.run("get -n kube-system events")
	s.kubectl("delete", "elasticquotatree", "-n", "kube-system", "new-tree")

	s.kubectl("patch", "queue", "-n", clustertest.Namespace, "company-research", "--type=merge", "-p", `{"spec":{"stop":"Hold"}}`)
	s.Apply(job("held", "1", ""))
	s.WaitForReason("Job", "held", "QueueStopped")
	s.run("queue -n research")
	s.kubectl("patch", "queue", "-n", clustertest.Namespace, "company-research", "--type=merge", "-p", `{"spec":{"stop":"None"}}`)
	s.WaitForPhase("Job", "held", "Running")
	s.Delete(harness.Jobs, "held")
	s.controller.Stop()
	s.run("leases")
	s.controller.Start()

	keeps := strings.Replace(example(s.t, "rayjob.yaml"), "  shutdownAfterJobFinishes: true\n", "", 1)
	s.Apply(strings.NewReplacer("name: ray-resources", "name: tune", mark, harness.RunTime+`: "1s"`+"\n    "+mark).Replace(keeps))
	s.WaitForReason("RayJob", "tune", wellknown.ReasonPodsRemain)
	s.run("list")
	s.run("why -n research tune")
	s.Delete(harness.RayJobs, "tune")

	s.Apply(fourJobs(s.t))
	waitForFourJobs(s)
	s.controller.Stop()
	s.run("why -n research train-c")
	s.controller.Start()
	// In the cluster of the page, the controller has its default port.
	var port string
	harness.Eventually(s.t, time.Minute, "kube-queue-controller writes its address", func() (bool, string) {
		var err error
		port, err = suite.Kubectl(s.t.Context(), "get", "-n", clustertest.Namespace, "endpointslice", "kube-queue-controller-webhook", "-o", "jsonpath={.ports[0].port}")
		return err == nil && port != "", fmt.Sprint(err)
	})
	s.asOnPage = strings.NewReplacer(port, fmt.Sprintf("%-*s", len(port), "9443"))
	s.rest()
}

// podsBeforeTheRelease creates a Job while no policy holds Jobs.
func podsBeforeTheRelease(s *scene) {
	const binding = "kube-queue-hold-job"
	out := s.kubectl("get", "mutatingadmissionpolicybinding", binding, "-o", "json")
	var hold unstructured.Unstructured
	harness.Must(s.t, hold.UnmarshalJSON([]byte(out)))
	hold.SetResourceVersion("")
	hold.SetUID("")
	hold.SetManagedFields(nil)
	text, err := hold.MarshalJSON()
	harness.Must(s.t, err)
	// No node has 9 cpu, so the Job does not start before it is suspended.
	late := job("late", "9", "")
	waitForHold := func(held string) {
		harness.Eventually(s.t, time.Minute, "a new Job has suspend: "+held, func() (bool, string) {
			out, err := suite.KubectlWith(s.t.Context(), late, "create", "-n", s.Namespace, "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec.suspend}")
			harness.Must(s.t, err)
			return out == held, out
		})
	}
	s.kubectl("delete", "mutatingadmissionpolicybinding", binding)
	waitForHold("false")
	s.Apply(late)
	s.run("HeldLate")
	s.run("mutatingadmissionpolicybindings")
	s.Allowed = []string{"early-pod"} // this is the topic of the section
	s.Check(s.t.Context())
	s.Allowed = nil
	s.Delete(harness.Jobs, "late")
	s.ApplyAsIs(string(text))
	waitForHold("true")
}

// deleteFourJobs deletes the jobs of fourJobs.
func deleteFourJobs(s *scene) {
	for _, name := range []string{"train-a", "train-b", "train-c", "giant"} {
		s.Delete(harness.Jobs, name)
	}
}

func admissionChecks(s *scene) {
	s.write("check.yaml", s.page.Manifests[0])
	waitForQueue(s)
	s.rest()
}

// waitForQueue waits until the Queue of namespace research exists.
func waitForQueue(s *scene) {
	harness.Eventually(s.t, time.Minute, "the Queue exists", func() (bool, string) {
		_, err := s.Queue.SchedulingV1alpha1().Queues(clustertest.Namespace).Get(s.t.Context(), "company-research", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func letProductionJobsGoFirst(s *scene) {
	s.write("one-gpu.yaml", s.page.Manifests[0])
	// The job must not end while the page is read.
	s.write("dev.yaml", strings.Replace(s.page.Manifests[1], "annotations:\n", "annotations:\n    "+harness.RunTime+": "+harness.UntilFinished.String()+"\n", 1))
	s.run("apply -f one-gpu.yaml")
	waitForQueue(s)
	s.run("LowerPriority")
	s.run("dev.yaml")
	s.run("get -n research rayjob,qu")
	for _, command := range s.page.Commands {
		if strings.HasPrefix(command.Text, "sed ") {
			_, err := s.shell(command.Text)
			harness.Must(s.t, err)
		}
	}
	s.rest()
}

func limitRunTime(s *scene) {
	s.released = true
	pi := example(s.t, "job.yaml")
	const mark = `scheduling.x-k8s.io/suspend: "true"`
	s.Apply(strings.Replace(pi, mark, "scheduling.x-k8s.io/max-exec-time-seconds: \"10\"\n    "+mark, 1))
	s.run("get")
	s.run("describe")
	s.run("annotate")
	s.run("get")
}

func createAUnitByHand(s *scene) {
	s.ApplyAsIs(s.page.Manifests[0])
	s.run("wait")
	s.run("patch") // this renews it
	s.run("patch")
	s.run("delete")
	s.ApplyAsIs(s.page.Manifests[0])
	s.run("get")
}

// The trace of the simulator's sample is replayed, and then one of the jobs in the cluster.
func tryAQuotaTree(s *scene) {
	s.run("--print-tree")
	s.run("--plot")
	s.kubectl("delete", "elasticquotatree", "-n", "kube-system", "--all")
	s.run("apply")
	s.kubectl("delete", "elasticquotatree", "-n", "kube-system", "--all")
	s.ApplyAsIs(example(s.t, "quota-tree.yaml"))

	apply(s.t, s.Env, job("train-a", "1", ""))
	s.WaitForPhase("Job", "train-a", "Running")
	s.Finish(harness.Jobs, "train-a")
	s.WaitForPhase("Job", "train-a", "Succeeded")
	for _, command := range []string{"kubectl get jobs", "kubectl get queueunits"} {
		s.run(command)
		trace, err := os.ReadFile(filepath.Join(s.folder, "jobs.csv"))
		harness.Must(s.t, err)
		if rows := strings.Split(strings.TrimSpace(string(trace)), "\n"); len(rows) != 2 || !strings.Contains(rows[1], `"research","train-a"`) {
			s.t.Errorf("%s makes the trace:\n%s", command, trace)
		}
	}
	if out := s.run("--tree -"); !strings.Contains(out, "1 job of 1 tenant") {
		s.t.Errorf("the trace of the cluster gives:\n%s", out)
	}
	s.run("--victims restart")
	s.run("--victims resume")
	s.run("completion")
}

// The nodes have no real GPUs, so their labels are missing.
func countGPUs(s *scene) {
	const label = "nvidia.com/gpu.product"
	s.kubectl("label", "node", "node-1", label+"=NVIDIA-H100-80GB-HBM3")
	s.kubectl("label", "node", "node-2", "node-3", label+"=NVIDIA-A100-SXM4-80GB")
	s.rest()
	s.kubectl("label", "node", "--all", label+"-")
}

func reasons(s *scene) {
	s.Apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: default}\nspec: {hard: {requests.cpu: 4}}\n")
	apply(s.t, s.Env, job("one", "1", ""))
	s.run("describe resourcequota")
	s.run("qu,pods")
	s.run("get qu -A")
	s.run("get qu -n")
	s.kubectl("patch", "queue", "-n", clustertest.Namespace, "company-research", "--type=merge", "-p", `{"spec":{"stop":"Hold"}}`)
	s.rest()
}

func support(s *scene) {
	apply(s.t, s.Env, job("one", "1", ""))
	s.unit = s.WaitForUnit("Job", "one").Name
	s.rest()
}
