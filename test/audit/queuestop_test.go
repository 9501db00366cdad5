package audit

import (
	"testing"
	"time"
)

// queued starts a script with a Queue for the group of fourCPU.
func (s *script) queued() *thing {
	s.create(admin, trees, fourCPU)
	return s.create(controller, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue,
  metadata: {name: root-team, namespace: kube-queue}, spec: {}, status: {quota: root/team}}`)
}

// named returns a job whose unit names its Queue.
func (s *script) named(cpu int) *play {
	p := s.tfjob("a", cpu)
	p.enqueue()
	p.unit.set("status.queue", "root-team")
	return p
}

func (p *play) goes() *play {
	p.dequeue()
	p.release()
	p.start()
	p.runs()
	return p
}

func TestStoppedQueues(t *testing.T) {
	runStories(t, []story{
		{name: "a drained queue gets back what it has released, and goes on", act: func(s *script) {
			queue := s.queued()
			p := s.named(3).goes()
			queue.patch(admin, "spec.stop", "Drain")
			p.evictFor("QueueStopped")
			s.wait(time.Minute)
			queue.patch(admin, "spec.stop", "None")
			p.goes()
		}},
		{name: "a unit that was admitted is evicted because nobody admitted it", act: func(s *script) {
			s.queued()
			s.named(3).goes().evictFor("NotAdmitted")
		}, breaks: []string{"undue-eviction"}},
		{name: "a unit is evicted from a queue that nobody has stopped", act: func(s *script) {
			s.queued()
			s.named(3).goes().evictFor("QueueStopped")
		}, breaks: []string{"undue-eviction"}},
		{name: "a queue on hold keeps what it has released", act: func(s *script) {
			queue := s.queued()
			p := s.named(3).goes()
			queue.patch(admin, "spec.stop", "Hold")
			p.evictFor("QueueStopped")
		}, breaks: []string{"undue-eviction"}},
		{name: "another queue is drained", act: func(s *script) {
			s.queued()
			p := s.named(3).goes()
			s.create(admin, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue,
  metadata: {name: root-other, namespace: kube-queue}, spec: {stop: Drain}, status: {quota: root/other}}`)
			p.evictFor("QueueStopped")
		}, breaks: []string{"undue-eviction"}},
		{name: "a Queue of that name in another namespace is drained", act: func(s *script) {
			s.queued()
			p := s.named(3).goes()
			s.create(admin, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue,
  metadata: {name: root-team}, spec: {stop: Drain}, status: {quota: root/team}}`)
			p.evictFor("QueueStopped")
		}, breaks: []string{"undue-eviction"}},
		{name: "the queue went on just now", act: func(s *script) {
			queue := s.queued()
			p := s.named(3).goes()
			queue.patch(admin, "spec.stop", "Drain")
			queue.patch(admin, "spec.stop", "None")
			p.evictFor("QueueStopped")
		}},
		{name: "the queue went on some time ago", act: func(s *script) {
			queue := s.queued()
			p := s.named(3).goes()
			queue.patch(admin, "spec.stop", "Drain")
			queue.patch(admin, "spec.stop", "None")
			s.wait(3 * time.Second)
			p.evictFor("QueueStopped")
		}, breaks: []string{"undue-eviction"}},
		{name: "the drained Queue was deleted some time ago", act: func(s *script) {
			queue := s.queued()
			p := s.named(3).goes()
			queue.patch(admin, "spec.stop", "Drain")
			queue.remove(admin)
			s.wait(3 * time.Second)
			p.evictFor("QueueStopped")
		}, breaks: []string{"undue-eviction"}},
		{name: "the namespace has moved to a group that is drained", act: func(s *script) {
			s.queued()
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.set("status.queue", "root-before")
			p.goes()
			s.create(admin, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue,
  metadata: {name: root-team, namespace: kube-queue}, spec: {stop: Drain}, status: {quota: root/team}}`)
			p.evictFor("QueueStopped")
		}},
		{name: "a stopped queue releases nothing", act: func(s *script) {
			queue := s.queued()
			p := s.named(3)
			queue.patch(admin, "spec.stop", "Hold")
			s.wait(3 * time.Second)
			p.goes()
		}, breaks: []string{"stopped-dequeue"}},
		{name: "what it releases as it is stopped was decided before", act: func(s *script) {
			queue := s.queued()
			p := s.named(3)
			queue.patch(admin, "spec.stop", "Hold")
			p.goes()
		}},
		{name: "nor does it while it is stopped in another way", act: func(s *script) {
			queue := s.queued()
			p := s.named(3)
			queue.patch(admin, "spec.stop", "Hold")
			s.wait(3 * time.Second)
			queue.patch(admin, "spec.stop", "Drain")
			p.goes()
		}, breaks: []string{"stopped-dequeue"}},
	})
}
