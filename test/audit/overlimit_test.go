package audit

import (
	"strings"
	"testing"
	"time"
)

// tree returns a tree with a root and its children.
func treeOf(limits, children string) string {
	return `{apiVersion: scheduling.sigs.k8s.io/v1beta1, kind: ElasticQuotaTree, metadata: {name: tree, namespace: kube-system},
  spec: {root: {name: root, ` + limits + `, children: [` + children + `]}}}`
}

// setTree changes a tree's spec.
func setTree(s *script, tree *thing, text string) {
	other := newScript(s.t).create(admin, trees, text)
	tree.patch(admin, "spec", other.obj["spec"])
}

func TestOverLimit(t *testing.T) {
	runStories(t, []story{
		{name: "one after the other fits", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 3), s.tfjob("b", 3)
			a.admit().end()
			b.admit().end()
		}},
		{name: "two at once do not", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit()
			s.tfjob("b", 3).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a unit that ended without its job still counts", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.endUnit()
			s.tfjob("b", 3).admit()
			a.finish()
		}, breaks: []string{"over-limit", "ended-too-early"}},
		{name: "a job that ended no longer counts, even before its unit says so", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.finish()
			s.tfjob("b", 3).admit()
			a.endUnit()
		}},
		{name: "a job that was deleted no longer counts", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.job.remove(admin)
			s.tfjob("b", 3).admit()
			a.unit.remove(collector)
		}},
		{name: "the answer to a delete may come late", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 3).admit(), s.tfjob("b", 3)
			b.enqueue()
			answer := a.job.remove(admin)
			b.dequeue()
			b.release()
			answer["stageTimestamp"] = s.now.Add(time.Second).Format("2006-01-02T15:04:05.000000Z")
			a.unit.remove(collector)
		}},
		{name: "an evicted job counts until it is suspended and requeued", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 3).admit(), s.tfjob("b", 3)
			a.evict()
			b.admit()
		}},
		{name: "an eviction that is only decided frees nothing", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			a.unit.conditions("Evicted=True/Preempted")
			a.unit.patchStatus(controller)
			s.tfjob("b", 3).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a job that is still suspended does not free what its unit has", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 3), s.tfjob("b", 3)
			a.enqueue()
			b.enqueue()
			a.dequeue()
			b.dequeue()
		}, breaks: []string{"over-limit"}},
		{name: "oversell widens a limit and is rounded down", options: Options{Oversell: "1.2"}, act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 4, pods.io/x: 1}", "{name: team, namespaces: [default]}"))
			s.tfjob("a", 2).admit()
			s.tfjob("b", 2).admit() // 4 of 4.8
		}},
		{name: "oversell does not go past its own limit", options: Options{Oversell: "1.2"}, act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 4}", "{name: team, namespaces: [default]}"))
			s.tfjob("a", 2).admit()
			s.tfjob("b", 3).admit()
		}, breaks: []string{"over-limit"}},
		{name: "every ancestor counts", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 2}", "{name: team, namespaces: [default], max: {cpu: 9}}"))
			s.tfjob("a", 3).admit()
		}, breaks: []string{"over-limit"}},
		{name: "max-jobs counts units", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {kube-queue/max-jobs: 1}", "{name: team, namespaces: [default]}"))
			s.tfjob("a", 1).admit()
			s.tfjob("b", 1).admit()
		}, breaks: []string{"over-limit"}},
		{name: "what max does not name is unlimited, 0 is none", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {memory: 0}", "{name: team, namespaces: [default], max: {nvidia.com/gpu: 0}}"))
			s.tfjob("a", 100).admit()
		}},
		{name: "just after a change the old tree justifies", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3)
			a.enqueue()
			setTree(s, tree, treeOf("max: {cpu: 1}", "{name: team, namespaces: [default]}"))
			a.dequeue()
		}},
		{name: "later it does not", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3)
			a.enqueue()
			setTree(s, tree, treeOf("max: {cpu: 1}", "{name: team, namespaces: [default]}"))
			s.wait(3 * time.Second)
			a.dequeue()
		}, breaks: []string{"over-limit"}},
		{name: "a quota that shrinks under its use is no fault", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit()
			setTree(s, tree, treeOf("max: {cpu: 1}", "{name: team, namespaces: [default]}"))
			s.wait(3 * time.Second)
		}},
		{name: "an invalid tree leaves the last good one in force", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			setTree(s, tree, treeOf("max: {cpu: 100}, min: {cpu: 200}", "{name: team, namespaces: [default]}"))
			s.wait(3 * time.Second)
			s.tfjob("a", 5).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a younger tree does not count", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.wait(2 * time.Second)
			s.create(admin, trees, strings.Replace(treeOf("max: {cpu: 100}", "{name: team, namespaces: [default]}"), "name: tree", "name: other", 1))
			s.wait(3 * time.Second)
			s.tfjob("a", 5).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a tree elsewhere does not count", act: func(s *script) {
			s.create(admin, trees, strings.Replace(fourCPU, "kube-system", "default", 1))
			s.tfjob("a", 5).admit()
		}},
		{name: "a status write does not change the tree", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			tree.patchStatus(controller, "status.observedGeneration", 1)
			s.tfjob("a", 4).admit().end()
		}},
		{name: "a unit of a user's own counts by its phase", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			own := s.create(admin, units, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: own},
  spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, resource: {cpu: 3}}}`)
			own.patchStatus(controller, "status.phase", "Dequeued", "status.quota", "root/team")
			own.patchStatus(admin, "status.phase", "Succeeded")
			s.tfjob("a", 3).admit().end()
			own2 := s.create(admin, units, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: own2},
  spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, resource: {cpu: 5}}}`)
			own2.patchStatus(controller, "status.phase", "Dequeued", "status.quota", "root/team")
		}, breaks: []string{"over-limit"}},
		{name: "a RayJob counts while its cluster is there", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			job := s.create(admin, "ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {suspend: true}}`)
			p := &play{s: s, job: job, cpu: 3}
			p.enqueue()
			p.dequeue()
			job.patch(extensions, "spec.suspend", false)
			cluster := s.create("kuberay", "ray.io/v1/rayclusters", `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r-x, ownerReferences: [{kind: RayJob, name: r, uid: `+job.text("metadata.uid")+`, controller: true}]}, spec: {}}`)
			job.patchStatus("kuberay", "status.jobDeploymentStatus", "Complete", "status.jobStatus", "SUCCEEDED")
			s.tfjob("b", 3).admit()
			cluster.remove("kuberay")
			p.endUnit()
		}, breaks: []string{"over-limit"}},
		{name: "a RayJob without its cluster does not", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			job := s.create(admin, "ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {suspend: true}}`)
			p := &play{s: s, job: job, cpu: 3}
			p.enqueue()
			p.dequeue()
			job.patch(extensions, "spec.suspend", false)
			cluster := s.create("kuberay", "ray.io/v1/rayclusters", `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r-x, ownerReferences: [{kind: RayJob, name: r, uid: `+job.text("metadata.uid")+`, controller: true}]}, spec: {}}`)
			job.patchStatus("kuberay", "status.jobDeploymentStatus", "Complete", "status.jobStatus", "SUCCEEDED")
			cluster.remove("kuberay")
			s.tfjob("b", 3).admit()
			p.endUnit()
		}},
	})
}

func TestWrongQuota(t *testing.T) {
	two := treeOf("max: {cpu: 40}", `{name: team, namespaces: [default]}, {name: other, namespaces: [default]}, {name: rest, namespaces: ["*"]}`)
	admitAs := func(s *script, path string, fields ...any) {
		p := s.tfjob("a", 1)
		p.enqueue()
		if len(fields) > 0 {
			p.unit.patch(extensions, fields...)
		}
		p.unit.patchStatus(controller, "status.phase", "Dequeued", "status.quota", path)
	}
	runStories(t, []story{
		{name: "the first in tree order has the namespace", act: func(s *script) {
			s.create(admin, trees, two)
			admitAs(s, "root/team")
		}},
		{name: "and no other", act: func(s *script) {
			s.create(admin, trees, two)
			admitAs(s, "root/other")
		}, breaks: []string{"wrong-quota"}},
		{name: "a name picks another", act: func(s *script) {
			s.create(admin, trees, two)
			admitAs(s, "root/other", "spec.quotaName", "other")
		}},
		{name: "so does a path", act: func(s *script) {
			s.create(admin, trees, two)
			admitAs(s, "root/other", "spec.quotaName", "root/other")
		}},
		{name: "a path of a node that does not list it is refused", act: func(s *script) {
			s.create(admin, trees, two)
			admitAs(s, "root/rest", "spec.quotaName", "root/rest")
		}, breaks: []string{"wrong-quota"}},
		{name: "a name of a node that does not list it is refused", act: func(s *script) {
			s.create(admin, trees, two)
			admitAs(s, "root/rest", "spec.quotaName", "rest")
		}, breaks: []string{"wrong-quota"}},
		{name: "a star takes what no other lists", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 40}", `{name: team, namespaces: [elsewhere]}, {name: rest, namespaces: ["*"]}`))
			admitAs(s, "root/rest")
		}},
		{name: "where no node lists it, nothing is admitted", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 40}", `{name: team, namespaces: [elsewhere]}`))
			admitAs(s, "root/team")
		}, breaks: []string{"wrong-quota"}},
	})
}
