package audit

import (
	"testing"
	"time"
)

func TestDoubleRelease(t *testing.T) {
	runStories(t, []story{
		{name: "a release for each dequeue is right", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.evict()
			s.wait(3 * time.Second)
			p.dequeue()
			p.release()
			p.start()
			p.end()
		}},
		{name: "a release without one is not", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.release()
		}, breaks: []string{"release-without-dequeue"}},
		{name: "nor is one without a unit", act: func(s *script) {
			s.tfjob("a", 3).release()
		}, breaks: []string{"release-without-dequeue"}},
		{name: "a second release for one dequeue is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3)
			p.enqueue()
			p.dequeue()
			p.release()
			p.suspend(admin)
			p.release()
		}, breaks: []string{"double-release"}},
		{name: "a person may release by hand, and the job be held again", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3)
			p.enqueue()
			p.job.patch(admin, "spec.suspend", false)
			p.suspend(extensions)
			p.dequeue()
			p.release()
		}},
		{name: "a unit is not dequeued again before it gave back", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.dequeue()
		}, breaks: []string{"double-dequeue"}},
		{name: "nor when only its phase went back", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.unit.conditions("Evicted=True/Preempted")
			p.unit.patchStatus(controller)
			p.unit.conditions("Evicted=True/Stopped")
			p.unit.patchStatus(extensions)
			p.unit.patchStatus(controller, "status.phase", "Backoff")
			p.dequeue()
		}, breaks: []string{"double-dequeue", "early-return"}},
	})
}

func TestHeldAfterEnd(t *testing.T) {
	none := time.Duration(0)
	runStories(t, []story{
		{name: "a unit that ends soon after its job is right", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.finish()
			s.wait(5 * time.Second)
			p.endUnit()
			s.wait(time.Minute)
			s.tfjob("b", 1)
		}},
		{name: "a write that changes nothing has the revision of an earlier one, and not its time", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.finish()
			other := s.tfjob("b", 1).job
			p.endUnit()
			s.wait(15 * time.Second)
			s.entry(operator, "patch", other.resource, "", "default", "b", 200, other.obj)
		}},
		{name: "a write may be stored long before it is answered", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.finish()
			answer := s.tfjob("b", 1).job.patch(operator)
			p.endUnit()
			answer["stageTimestamp"] = s.now.Add(15 * time.Second).Format("2006-01-02T15:04:05.000000Z")
		}},
		{name: "one that ends late is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.finish()
			s.wait(11 * time.Second)
			p.endUnit()
		}, breaks: []string{"held-after-end"}},
		{name: "one that never ends is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().finish()
			s.wait(time.Minute)
			s.tfjob("b", 1)
		}, breaks: []string{"held-after-end"}},
		{name: "at the end of the log only what is overdue is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().finish()
			s.wait(time.Second)
		}},
		{name: "unless the log is known to go on", options: Options{Until: time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)}, act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().finish()
		}, breaks: []string{"held-after-end"}},
		{name: "or there is no grace", options: Options{Grace: &none}, act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().finish()
		}, breaks: []string{"held-after-end"}},
		{name: "a unit whose job is gone may show that pods are left", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.abandoned("PodsRemain")
			p.pods[0].removePod(admin)
			s.wait(19 * time.Second)
			p.unit.remove(extensions)
		}},
		{name: "but must show it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.abandoned("")
			s.tfjob("b", 1)
		}, breaks: []string{"held-after-end"}},
		{name: "and only while one is left", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.abandoned("PodsRemain")
			p.pods[0].removePod(admin)
			s.wait(21 * time.Second)
			p.unit.remove(extensions)
		}, breaks: []string{"held-after-end"}},
		{name: "a unit whose job is gone is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().job.remove(admin)
			s.wait(time.Minute)
			s.tfjob("b", 1)
		}, breaks: []string{"held-after-end"}},
		{name: "unless it goes too", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.job.remove(admin)
			p.unit.remove(collector)
			s.wait(time.Minute)
			s.tfjob("b", 1)
		}},
		{name: "a unit that ends before its job is reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.endUnit()
			p.finish()
		}, breaks: []string{"ended-too-early"}},
		{name: "so is one that ends otherwise than its job", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.finish()
			p.unit.patchStatus(extensions, "status.phase", "Failed")
		}, breaks: []string{"wrong-end"}},
		{name: "a failed MPIJob goes on until it has a completion time", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			job := s.create(admin, "kubeflow.org/v2beta1/mpijobs", `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob,
  metadata: {name: m, annotations: {scheduling.x-k8s.io/suspend: "true"}}, spec: {runPolicy: {suspend: true}}}`)
			p := &play{s: s, job: job, cpu: 1}
			p.admit()
			job.conditions("Failed=True/Evicted")
			job.patchStatus("mpi-operator")
			p.unit.patchStatus(extensions, "status.phase", "Failed")
			job.patchStatus("mpi-operator", "status.completionTime", "2026-03-01T12:00:10Z")
		}, breaks: []string{"ended-too-early"}},
	})
}

func TestEarlyReturn(t *testing.T) {
	evictUntilStopped := func(s *script, suspend, clean bool) {
		s.create(admin, trees, fourCPU)
		p := s.tfjob("a", 3).admit()
		p.unit.conditions("Evicted=True/Preempted")
		p.unit.patchStatus(controller)
		if suspend {
			p.suspend(extensions)
		}
		if clean {
			p.pods[0].removePod(operator)
		}
		p.unit.conditions("Evicted=True/Stopped")
		p.unit.patchStatus(extensions)
		p.unit.patchStatus(controller, "status.phase", "Backoff")
	}
	// The removal is complete only after the requeue, and was requested that long before it.
	slowRemoval := func(s *script, before time.Duration) {
		s.create(admin, trees, fourCPU)
		p := s.tfjob("a", 3).admit()
		p.unit.conditions("Evicted=True/Preempted")
		p.unit.patchStatus(controller)
		p.suspend(extensions)
		p.unit.conditions("Evicted=True/Stopped")
		p.unit.patchStatus(extensions)
		requested := s.now
		p.unit.patchStatus(controller, "status.phase", "Backoff")
		p.pods[0].removePod(kwok)
		s.entries[len(s.entries)-1]["requestReceivedTimestamp"] = requested.Add(-before).Format("2006-01-02T15:04:05.000000Z")
	}
	runStories(t, []story{
		{name: "suspended, with no pod left, is right", act: func(s *script) { evictUntilStopped(s, true, true) }},
		{name: "so is a pod whose removal is complete only afterwards", act: func(s *script) { slowRemoval(s, time.Millisecond) }},
		{name: "but not one whose removal is requested afterwards", act: func(s *script) { slowRemoval(s, -time.Millisecond) }, breaks: []string{"early-return"}},
		{name: "a pod is left", act: func(s *script) { evictUntilStopped(s, true, false) }, breaks: []string{"early-return"}},
		{name: "the job is not suspended", act: func(s *script) { evictUntilStopped(s, false, true) }, breaks: []string{"early-return"}},
	})
}

// Most deletions return the revision of an earlier write. Here one is requested while another pod is being removed.
func TestADeletionWithAnOldRevisionDoesNotMoveTheRemovalOfAPod(t *testing.T) {
	runStories(t, []story{{name: "long after the end of a job", act: func(s *script) {
		s.create(admin, trees, fourCPU)
		other := s.stranger(1, "")
		p := s.tfjob("a", 3).admit()
		p.finish()
		deleted := s.create(admin, pods, `{apiVersion: v1, kind: Pod, metadata: {name: deleted}, spec: {containers: [{name: main}]}, status: {phase: Pending, qosClass: BestEffort}}`)
		p.endUnit()
		s.wait(15 * time.Second)
		requested := s.now
		deleted.set("metadata.deletionTimestamp", s.now.Format(time.RFC3339))
		deleted.set("metadata.deletionGracePeriodSeconds", 0)
		s.entry(kwok, "delete", pods, "", "default", "deleted", 200, deleted.obj)
		other.removePod(kwok)
		s.entries[len(s.entries)-1]["requestReceivedTimestamp"] = requested.Add(-time.Millisecond).Format("2006-01-02T15:04:05.000000Z")
	}}})
}

func TestRequestMismatch(t *testing.T) {
	runStories(t, []story{
		{name: "what the pods request is what the unit requested", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().end()
		}},
		{name: "a total that is not the sum of the pod sets is reported", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patch(extensions, "spec.resource.cpu", "2")
		}, breaks: []string{"sum-mismatch"}},
		{name: "an amount that is no number is reported", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patch(extensions, "spec.resource.cpu", "many")
		}, breaks: []string{"unreadable"}},
		{name: "so is one that takes minutes to read", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patch(extensions, "spec.resource.cpu", "1e-1000000000")
		}, breaks: []string{"unreadable"}},
		{name: "pods that request more than their unit are reported", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.release()
			p.cpu = 4
			p.start()
			p.end()
		}, breaks: []string{"pods-mismatch"}},
		{name: "a pod that is made again counts once", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.pods[0].removePod(operator)
			p.start()
			p.end()
		}},
		{name: "a batch Job counts as many pods as it has at once", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 2)
			p.job.patch(admin, "spec.completions", 3)
			p.admit()
			for _, name := range []string{"b", "c"} {
				pod := p.start()
				pod.set("metadata.name", name)
			}
			p.end()
		}},
	})
}

// verdict is the state of the one admission check of a unit.
func verdict(state string) []any {
	return []any{map[string]any{"name": "nodes", "state": state}}
}

func TestUnitMoves(t *testing.T) {
	ownUnit := `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: own},
  spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, resource: {cpu: 1}}}`
	runStories(t, []story{
		{name: "each step by the one who may", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			s.wait(2 * time.Second)
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "QuotaExceeded")
			p.unit.patchStatus(controller, "status.phase", "Reserved", "status.quota", "root/team", "status.admissionChecks", verdict("Pending"))
			p.unit.patchStatus(admin, "status.admissionChecks", verdict("Ready"))
			p.dequeue()
			p.release()
			p.start()
			p.unit.patchStatus(extensions, "status.phase", "Running")
			p.end()
		}},
		{name: "a reserved unit gives its quota back", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			for _, then := range []string{"Backoff", "Enqueued"} {
				p.unit.patchStatus(controller, "status.phase", "Reserved", "status.quota", "root/team", "status.admissionChecks", verdict("Pending"))
				p.unit.patchStatus(controller, "status.phase", then)
			}
			p.dequeue()
			p.release()
			p.start()
			p.end()
		}},
		{name: "a unit is released before its checks are ready", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patchStatus(controller, "status.phase", "Reserved", "status.quota", "root/team", "status.admissionChecks", verdict("Pending"))
			p.dequeue()
			p.release()
			p.end()
		}, breaks: []string{"unchecked-release"}},
		{name: "a person moves a unit", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patchStatus(admin, "status.phase", "Dequeued", "status.quota", "root/team", "status.attempts", 1)
		}, breaks: []string{"wrong-writer"}},
		{name: "each program writes only its own steps", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.unit.patchStatus(controller, "status.phase", "Running")
		}, breaks: []string{"wrong-writer"}},
		{name: "a step that is not in the table", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patchStatus(extensions, "status.phase", "Running", "status.quota", "root/team")
		}, breaks: []string{"wrong-move"}},
		{name: "the controller corrects a backoff that has ended", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patchStatus(controller, "status.phase", "Backoff", "status.reason", "Backoff")
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "QuotaExceeded")
		}},
		{name: "nobody else does", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patchStatus(extensions, "status.phase", "Backoff", "status.reason", "Backoff")
		}, breaks: []string{"wrong-writer"}},
		{name: "an end is the end", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.end()
			p.unit.patchStatus(controller, "status.phase", "Enqueued")
		}, breaks: []string{"wrong-move"}},
		{name: "requeued without an eviction that is done", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.unit.patchStatus(controller, "status.phase", "Enqueued")
		}, breaks: []string{"wrong-move"}},
		{name: "a deactivated unit is evicted, waits, and is released when it is active again", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.unit.patch(extensions, "spec.active", false)
			p.evictFor("Deactivated")
			p.unit.patch(extensions, "spec.active", true)
			p.dequeue()
		}},
		{name: "a unit is evicted as deactivated that is active", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().evictFor("Deactivated")
		}, breaks: []string{"undue-eviction"}},
		{name: "a deactivated unit is released", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.patch(extensions, "spec.active", false)
			p.dequeue()
		}, breaks: []string{"inactive-dequeue"}},
		{name: "a unit is evicted when it has run for as long as it may", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admitFor(30)
			s.wait(31 * time.Second)
			p.evictFor("MaximumExecutionTime")
		}},
		{name: "a unit is evicted before", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admitFor(30)
			s.wait(29 * time.Second)
			p.evictFor("MaximumExecutionTime")
		}, breaks: []string{"undue-eviction"}},
		{name: "a unit that may run as long as it takes is evicted for its time", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 3).admit().evictFor("MaximumExecutionTime")
		}, breaks: []string{"undue-eviction"}},
		{name: "job-extensions evicts nobody", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.unit.conditions("Evicted=True/Preempted")
			p.unit.patchStatus(extensions)
		}, breaks: []string{"wrong-writer"}},
		{name: "a person who suspends a released job has it requeued", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3).admit()
			p.suspend(admin)
			p.pods[0].removePod(operator)
			p.unit.conditions("Evicted=True/SuspendedByUser")
			p.unit.patchStatus(extensions)
			p.unit.conditions()
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "SuspendedByUser")
		}},
		{name: "a person who suspends a released job resumes it before it is requeued", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3).admit()
			p.suspend(admin)
			p.pods[0].removePod(operator)
			p.unit.conditions("Evicted=True/SuspendedByUser")
			p.unit.patchStatus(extensions)
			p.job.patch(admin, "spec.suspend", false)
			p.unit.conditions()
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "SuspendedByUser")
			p.dequeue()
		}, breaks: []string{"early-return"}},
		{name: "a job that changed before its release is requeued", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3)
			p.enqueue()
			p.dequeue()
			p.unit.conditions("Evicted=True/JobChanged")
			p.unit.patchStatus(extensions)
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "JobChanged")
			p.unit.conditions("Evicted=False/Requeued")
			p.unit.patchStatus(extensions)
		}},
		{name: "a job that changed after its release is not", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3).admit()
			p.unit.conditions("Evicted=True/JobChanged")
			p.unit.patchStatus(extensions)
		}, breaks: []string{"wrong-move"}},
		{name: "two units for one job", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.enqueue()
		}, breaks: []string{"twin"}},
		{name: "a unit is deleted while its job is there", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.unit.remove(extensions)
		}, breaks: []string{"unit-deleted"}},
		{name: "a unit is deleted when its job leaves the queue", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.job.patch(admin, "metadata.annotations", nil)
			p.unit.remove(extensions)
		}},
		{name: "or says that it is not to be queued", act: func(s *script) {
			p := s.batchJob("a", 3)
			p.enqueue()
			p.job.patch(admin, "metadata.annotations", map[string]any{suspendKey: "false"})
			p.unit.remove(extensions)
		}},
		{name: "or is given to another queue before its release", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3)
			p.enqueue()
			p.dequeue()
			p.job.patch(admin, "metadata.labels", map[string]any{"kueue.x-k8s.io/queue-name": "q"})
			p.unit.remove(extensions)
		}},
		{name: "but that is not for the controller to do", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.job.patch(admin, "metadata.annotations", nil)
			p.unit.remove(controller)
		}, breaks: []string{"unit-deleted"}},
		{name: "nor does a release take the job out of the queue", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.unit.remove(extensions)
		}, breaks: []string{"unit-deleted"}},
		{name: "nor a person who suspends the released job", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.job.patch(admin, "spec.runPolicy.suspend", true)
			p.pods[0].removePod(operator)
			p.unit.conditions("Evicted=True/SuspendedByUser")
			p.unit.patchStatus(extensions)
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "SuspendedByUser")
			p.unit.remove(extensions)
		}, breaks: []string{"unit-deleted"}},
		{name: "a unit ends in the queue when its job has ended", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.job.conditions("Failed=True")
			p.job.patchStatus(operator)
			p.unit.patchStatus(extensions, "status.phase", "Failed")
		}},
		{name: "and after an eviction", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.tfjob("a", 3).admit()
			p.evict()
			p.finish()
			p.endUnit()
		}},
		{name: "but not before its job", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.endUnit()
		}, breaks: []string{"ended-too-early", "wrong-move"}},
		{name: "and not by the controller", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.finish()
			p.unit.patchStatus(controller, "status.phase", "Succeeded")
		}, breaks: []string{"wrong-writer"}},
		{name: "a unit is deleted after its job", act: func(s *script) {
			p := s.tfjob("a", 3)
			p.enqueue()
			p.job.remove(admin)
			p.unit.remove(extensions)
		}},
		{name: "a person makes a unit for a job of a known kind", act: func(s *script) {
			s.create(admin, units, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: own},
  spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: t, uid: none}, resource: {cpu: 1}}}`)
		}, breaks: []string{"wrong-writer"}},
		{name: "who makes a unit for a thing of their own ends it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			own := s.create(admin, units, ownUnit)
			own.patchStatus(controller, "status.phase", "Dequeued", "status.quota", "root/team")
			own.patchStatus(admin, "status.phase", "Succeeded")
			own.remove(admin)
		}},
		{name: "but does not admit it", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.create(admin, units, ownUnit).patchStatus(admin, "status.phase", "Dequeued", "status.quota", "root/team")
		}, breaks: []string{"wrong-writer"}},
	})
}

func TestWriteBudget(t *testing.T) {
	// full is a job with one event that waits and runs for a while.
	full := func(s *script, waits, runs time.Duration, more func(*play)) {
		s.create(admin, trees, fourCPU)
		p := s.batchJob("a", 3)
		p.enqueue()
		s.wait(waits)
		if waits > time.Second {
			p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", "QuotaExceeded")
			p.event(extensions, "Queued")
		}
		p.dequeue()
		p.release()
		p.start()
		p.event(extensions, "Released")
		s.wait(runs)
		if runs > 2*time.Second {
			p.unit.patchStatus(extensions, "status.phase", "Running")
		}
		if more != nil {
			more(p)
		}
		p.end()
	}
	// restless changes its reason five times in half a minute, and uses all of the other writes in its
	// budget.
	restless := func(s *script, between func()) {
		full(s, 3*time.Second, 3*time.Second, nil)
		p := s.batchJob("b", 3)
		p.enqueue()
		for i := range 5 {
			s.wait(2 * time.Second)
			p.unit.patchStatus(controller, "status.reason", []string{"QuotaExceeded", "MaxJobs"}[i%2])
		}
		p.event(extensions, "Queued")
		between()
		p.unit.patchStatus(controller, "status.reason", "MaxJobs")
		p.dequeue()
		p.release()
		p.start()
		p.event(extensions, "Released")
		s.wait(3 * time.Second)
		p.unit.patchStatus(extensions, "status.phase", "Running")
		p.end()
	}
	take := func(s *script, lease *thing, holder string) func() {
		return func() { lease.patch(controller, "spec.holderIdentity", holder) }
	}
	runStories(t, []story{
		{name: "two causes that take turns all the time are too many", act: func(s *script) {
			restless(s, func() {})
		}, breaks: []string{"job-budget"}},
		{name: "but not where another controller begins to decide", act: func(s *script) {
			restless(s, take(s, s.lease(), "two"))
		}},
		{name: "the same controller renewing its lease explains nothing", act: func(s *script) {
			restless(s, take(s, s.lease(), "one"))
		}, breaks: []string{"job-budget"}},
		{name: "nor does one that gives it up", act: func(s *script) {
			restless(s, take(s, s.lease(), ""))
		}, breaks: []string{"job-budget"}},
		{name: "five when it does not wait", act: func(s *script) { full(s, 0, 0, nil) }},
		{name: "six are too many then", act: func(s *script) {
			full(s, 0, 0, func(p *play) { p.event(extensions, "Again") })
		}, breaks: []string{"job-budget"}},
		{name: "six when it runs long", act: func(s *script) { full(s, 0, 3*time.Second, nil) }},
		{name: "seven are too many then", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) { p.event(extensions, "Again") })
		}, breaks: []string{"job-budget"}},
		{name: "eight when it waits", act: func(s *script) { full(s, 3*time.Second, 3*time.Second, nil) }},
		{name: "nine are too many then", act: func(s *script) {
			full(s, 3*time.Second, 3*time.Second, func(p *play) { p.event(extensions, "Again") })
		}, breaks: []string{"job-budget"}},
		{name: "refused writes and those of others do not count", act: func(s *script) {
			full(s, 0, 0, func(p *play) {
				p.unit.write(extensions, "patch", "status", 409)
				p.event("system:kube-controller-manager", "Completed")
			})
		}},
		{name: "a changed cause is one more", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3)
			p.enqueue()
			s.wait(2 * time.Second)
			p.unit.patchStatus(controller, "status.reason", "QuotaExceeded")
			p.event(extensions, "Queued")
			s.wait(31 * time.Second)
			p.unit.patchStatus(controller, "status.reason", "MaxJobs")
			p.dequeue()
			p.release()
			p.start()
			p.event(extensions, "Released")
			s.wait(3 * time.Second)
			p.unit.patchStatus(extensions, "status.phase", "Running")
			p.end()
		}},
		{name: "a queue that is stopped and resumed costs a reason and an event each time", act: func(s *script) {
			full(s, 3*time.Second, 3*time.Second, nil)
			p := s.batchJob("b", 3)
			p.enqueue()
			s.wait(2 * time.Second)
			for _, reason := range []string{"QuotaExceeded", "QueueStopped", "MaxJobs"} {
				p.unit.patchStatus(controller, "status.reason", reason)
				p.event(extensions, "Queued")
			}
			p.dequeue()
			p.release()
			p.start()
			p.event(extensions, "Released")
			p.end()
		}},
		{name: "a cause that changes all the time is too many", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			p := s.batchJob("a", 3)
			p.enqueue()
			for range 8 {
				s.wait(time.Second)
				p.unit.patchStatus(controller, "status.reason", "QuotaExceeded")
				p.unit.patchStatus(controller, "status.reason", "MaxJobs")
			}
		}, breaks: []string{"job-budget"}},
		{name: "two more when its pods have no node for a while", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) {
				p.unit.patchStatus(controller, "status.conditions", []any{map[string]any{"type": "PodsScheduled", "status": "False", "message": "no node"}})
				p.unit.patchStatus(controller, "status.conditions", []any{})
			})
		}},
		{name: "but not to say the same twice", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) {
				for _, reason := range []string{"PodsUnschedulable", "Another"} {
					p.unit.patchStatus(controller, "status.conditions", []any{map[string]any{"type": "PodsScheduled", "status": "False", "message": "no node", "reason": reason}})
				}
			})
		}, breaks: []string{"job-budget"}},
		{name: "two more when it is over quota for a while", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) {
				for _, status := range []string{"True", "False"} {
					p.unit.patchStatus(controller, "status.conditions", []any{map[string]any{"type": "OverQuota", "status": status}})
				}
			})
		}},
		{name: "but not to show it twice", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) {
				for range 2 {
					p.unit.patchStatus(controller, "status.conditions", []any{map[string]any{"type": "OverQuota", "status": "True", "message": "another"}})
				}
			})
		}, breaks: []string{"job-budget"}},
		{name: "one more when its pods are ready after it runs", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) {
				p.unit.patchStatus(extensions, "status.conditions", []any{map[string]any{"type": "PodsReady", "status": "True"}})
			})
		}},
		{name: "but not to show it again", act: func(s *script) {
			full(s, 0, 3*time.Second, func(p *play) {
				for _, status := range []string{"True", "False", "True"} {
					p.unit.patchStatus(extensions, "status.conditions", []any{map[string]any{"type": "PodsReady", "status": status}})
				}
			})
		}, breaks: []string{"job-budget"}},
		{name: "a queue's status once in five seconds", act: func(s *script) {
			q := s.create(controller, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: q, namespace: kube-queue}}`)
			q.patchStatus(controller, "status.pending", 1)
			s.wait(5 * time.Second)
			q.patchStatus(controller, "status.pending", 2)
			s.tfjob("a", 1)
		}},
		{name: "and not more often", act: func(s *script) {
			q := s.create(controller, queues, `{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: Queue, metadata: {name: q, namespace: kube-queue}}`)
			q.patchStatus(controller, "status.pending", 1)
			s.wait(2 * time.Second)
			q.patchStatus(controller, "status.pending", 2)
			s.tfjob("a", 1)
		}, breaks: []string{"status-rate"}},
	})
}

// abandoned admits a job and deletes it, but not its pod. A minute later its unit still holds quota, with
// the reason.
func (s *script) abandoned(reason string) *play {
	p := s.tfjob("a", 3).admit()
	p.job.remove(admin)
	p.unit.patchStatus(extensions, "status.phase", "Running", "status.reason", reason)
	s.wait(time.Minute)
	return p
}
