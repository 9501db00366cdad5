package audit

import (
	"testing"
	"time"
)

// orphan deletes the job, its unit, and as the garbage collector the owners of its pods.
func (p *play) orphan() {
	p.job.set("metadata.deletionTimestamp", p.s.now.Format(time.RFC3339))
	p.job.set("metadata.deletionGracePeriodSeconds", 0)
	p.job.set("metadata.finalizers", []any{"orphan"})
	p.job.write(admin, "delete", "", 200)
	for _, pod := range p.pods {
		pod.loseOwners()
	}
	p.unit.remove(extensions)
	p.job.remove(collector)
}

// loseOwners removes the owners of a pod. The response contains only metadata.
func (th *thing) loseOwners() {
	entry := th.patch(collector, "metadata.ownerReferences", nil)
	entry["responseObject"] = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
		"metadata": entry["responseObject"].(map[string]any)["metadata"]}
}

// restart makes another process the one that decides.
func (s *script) restart(lease *thing) {
	by("two", lease.patch(controller, "spec.holderIdentity", "two"))
}

// The unit of a job that was deleted while its pods were kept is deleted, and the pods are charged
// without it.
func TestOrphansCount(t *testing.T) {
	broken := []string{"over-limit-by-pods"}
	runStories(t, []story{
		{name: "an orphan uses quota", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.orphan()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "that is not given out while it is there", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.orphan()
			s.tfjob("b", 2).admit()
		}},
		{name: "and is free when it is gone", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.orphan()
			a.pods[0].removePod(admin)
			s.tfjob("b", 3).admit()
		}},
		{name: "the unit of a job that was not deleted is needed, even if its pods are orphans", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			a.pods[0].loseOwners()
			a.unit.remove(extensions)
		}, breaks: []string{"unit-deleted"}},
		{name: "one without a label of its operator is known by what it named before", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.pods[0].set("metadata.labels", nil)
			a.orphan()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "but not to another process", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, a := s.lease(), s.tfjob("a", 2).admit()
			s.seen()
			a.pods[0].set("metadata.labels", nil)
			a.orphan()
			s.restart(lease)
			s.tfjob("b", 3).admit()
		}},
		{name: "another process knows it by its label, in its namespace", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, a := s.lease(), s.tfjob("a", 2).admit()
			s.seen()
			a.orphan()
			s.restart(lease)
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "but not the pods of a deleted job that still name it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, a := s.lease(), s.tfjob("a", 2).admit()
			s.seen()
			a.job.remove(admin)
			a.unit.remove(collector)
			s.restart(lease)
			s.tfjob("b", 3).admit()
		}},
		{name: "nor does another process without a lease", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a, b := s.tfjob("a", 2), s.tfjob("b", 3)
			a.enqueue()
			by("one", a.dequeue())
			a.release()
			a.start()
			s.seen()
			a.job.remove(admin)
			a.unit.remove(collector)
			b.enqueue()
			by("two", b.dequeue())
		}},
		{name: "a unit that exists is known to each process", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, a := s.lease(), s.tfjob("a", 2).admit()
			s.seen()
			a.pods = nil
			a.end()
			s.restart(lease)
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "an orphan of a job that was never queued uses no quota", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.podOf("x", "default", "other", 2).loseOwners()
			s.seen()
			s.tfjob("b", 3).admit()
		}},
		{name: "nor does one in kube-system that only the star lists", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 4}", `{name: rest, namespaces: ["*"]}`))
			lease, one := s.lease(), s.errandOf("x", "kube-system", "root/rest", 2).admit()
			pod := s.podOf("x", "kube-system", "system", 2)
			s.seen()
			pod.loseOwners()
			one.remove(admin)
			s.restart(lease)
			s.errand("default", "root/rest", 3).admit()
		}},
		{name: "a namespace without a group has no use", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			lease, a := s.lease(), s.tfjob("a", 2).admit()
			s.seen()
			a.orphan()
			s.restart(lease)
			s.becomes(tree, "max: {cpu: 4}", "{name: other, namespaces: [other]}")
			s.errand("other", "root/other", 3).admit()
		}},
		{name: "a job of the same name has it from then on", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, a := s.lease(), s.tfjob("a", 2).admit()
			s.seen()
			a.orphan()
			s.restart(lease)
			again := s.tfjob("a", 2)
			again.enqueue()
			again.dequeue()
			s.tfjob("b", 2).admit() // both count the same two
		}},
	})
}
