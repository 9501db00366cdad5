package audit

import (
	"testing"
	"time"
)

const leases = "coordination.k8s.io/v1/leases"

// by sets the process that sent the write.
func by(instance string, entry map[string]any) {
	entry["user"].(map[string]any)["extra"] = map[string]any{"authentication.kubernetes.io/credential-id": []any{"JTI=" + instance}}
}

// lease creates the controller's lease, held by its first process.
func (s *script) lease() *thing {
	lease := s.create(controller, leases, `{apiVersion: coordination.k8s.io/v1, kind: Lease,
  metadata: {name: kube-queue-controller, namespace: kube-queue}, spec: {holderIdentity: one, leaseDurationSeconds: 15}}`)
	by("one", s.entries[len(s.entries)-1])
	return lease
}

func TestTwoLeaders(t *testing.T) {
	take := func(lease *thing, instance string) {
		by(instance, lease.patch(controller, "spec.holderIdentity", instance))
	}
	explain := func(p *play, instance string) {
		by(instance, p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "QuotaExceeded"))
	}
	runStories(t, []story{
		{name: "who holds the lease acts, and then who has taken it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, p := s.lease(), s.tfjob("a", 3)
			p.enqueue()
			explain(p, "one")
			s.wait(16 * time.Second)
			take(lease, "two")
			explain(p, "two")
		}},
		{name: "who held it before acts again", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, p := s.lease(), s.tfjob("a", 3)
			p.enqueue()
			take(lease, "two")
			s.wait(time.Second)
			explain(p, "one")
		}, breaks: []string{"two-leaders"}},
		{name: "who does not hold it yet acts already", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.lease()
			p := s.tfjob("a", 3)
			p.enqueue()
			explain(p, "two")
		}, breaks: []string{"two-leaders"}},
		{name: "nobody is bound by a lease that was given up or has run out", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease, p := s.lease(), s.tfjob("a", 3)
			p.enqueue()
			s.wait(16 * time.Second)
			explain(p, "two")
			by("two", lease.patch(controller, "spec.holderIdentity", "two"))
			by("two", lease.patch(controller, "spec.holderIdentity", ""))
			explain(p, "three")
		}},
		{name: "another program has a lease of its own", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.lease()
			s.tfjob("a", 3).enqueue()
			by("another", s.entries[len(s.entries)-1])
		}},
	})
}
