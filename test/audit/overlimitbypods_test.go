package audit

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"kube-queue.dev/kube-queue/test/audit/model"
)

// seen waits until the controller must count all pods.
func (s *script) seen() { s.wait(3 * time.Second) }

// errandOf is an errand for an object that the log does not show.
func (s *script) errandOf(uid, namespace, path string, cpu int) errand {
	e := s.errand(namespace, path, cpu)
	e.patch(admin, "spec.consumerRef.uid", uid)
	return e
}

// podOf creates a pod that an object controls.
func (s *script) podOf(uid, namespace, name string, cpu int) *thing {
	return s.create(operator, pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s,
  labels: {batch.kubernetes.io/controller-uid: %[3]s}, ownerReferences: [{kind: Thing, name: t, uid: %[3]s, controller: true}]},
  spec: {containers: [{name: main, resources: {requests: {cpu: %[4]d}}}]}, status: {phase: Pending}}`, name, namespace, uid, cpu))
}

// rayJob admits a RayJob and creates its cluster, with pods of 1 cpu.
func (s *script) rayJob(cpu, count int) (cluster *thing) {
	job := s.create(admin, "ray.io/v1/rayjobs", `{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: r}, spec: {suspend: true}}`)
	p := &play{s: s, job: job, cpu: cpu}
	p.enqueue()
	p.dequeue()
	job.patch(extensions, "spec.suspend", false)
	cluster = s.create("kuberay", "ray.io/v1/rayclusters", `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r-x, ownerReferences: [{kind: RayJob, name: r, uid: `+job.text("metadata.uid")+`, controller: true}]}, spec: {}}`)
	for n := range count {
		s.podOf(cluster.text("metadata.uid"), "default", fmt.Sprintf("r-x-%d", n), 1)
	}
	return cluster
}

// terminate deletes a pod with a grace period, in seconds.
func (th *thing) terminate(grace int) {
	th.set("metadata.deletionTimestamp", th.s.now.Format(time.RFC3339))
	th.set("metadata.deletionGracePeriodSeconds", grace)
	th.write(operator, "delete", "", 200)
}

// fails changes the status of the last response.
func (s *script) fails(code int) {
	last := s.entries[len(s.entries)-1]
	last["responseStatus"] = map[string]any{"code": code}
	delete(last, "responseObject")
}

func TestOverLimitByPods(t *testing.T) {
	broken := []string{"over-limit-by-pods"}
	runStories(t, []story{
		{name: "pods within what was admitted add nothing", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit()
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "a job that has grown is charged for all its pods", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.seen()
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "what fits beside them is admitted", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.seen()
			s.tfjob("b", 1).admit()
		}},
		{name: "a pod that was just created need not be counted", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.wait(time.Second)
			s.tfjob("b", 2).admit()
		}},
		{name: "unless the delay is shorter", options: Options{PodLag: new(time.Duration)}, act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.wait(time.Second)
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "a pod replaces what was admitted resource by resource", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 4, memory: 4}", "{name: team, namespaces: [default]}"))
			a, b := s.tfjob("a", 1), s.tfjob("b", 1)
			a.admit().startWith(0).patchStatus(kwok, "spec.nodeName", "node-0")
			s.create(operator, pods, `{apiVersion: v1, kind: Pod, metadata: {name: a-large, ownerReferences: [{kind: TFJob, name: a, uid: `+a.job.text("metadata.uid")+`, controller: true}]},
  spec: {containers: [{name: main, resources: {requests: {memory: 3}}}]}, status: {phase: Pending}}`)
			s.seen()
			b.enqueue()
			b.unit.patch(extensions, "spec.resource", map[string]any{"cpu": "1", "memory": "2"}, "spec.podSets", nil)
			b.dequeue()
		}, breaks: broken},
		{name: "only resources that are requested are compared", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 4, memory: 2}", "{name: team, namespaces: [default]}"))
			a := s.tfjob("a", 1).admit()
			s.create(operator, pods, `{apiVersion: v1, kind: Pod, metadata: {name: a-large, ownerReferences: [{kind: TFJob, name: a, uid: `+a.job.text("metadata.uid")+`, controller: true}]},
  spec: {containers: [{name: main, resources: {requests: {memory: 3}}}]}, status: {phase: Pending}}`)
			s.seen()
			s.tfjob("b", 1).admit()
		}},
		{name: "a type of device that only the programs compute counts as admitted", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {gpu/h100: 2}", "{name: team, namespaces: [default]}"))
			a, b := s.tfjob("a", 1), s.tfjob("b", 1)
			for _, p := range []*play{a, b} {
				p.enqueue()
				p.unit.patch(extensions, "spec.resource", map[string]any{"cpu": "1", "gpu/h100": "1"}, "spec.podSets", nil)
				p.dequeue()
				p.release()
				p.start()
				p.startWith(1)
				s.seen()
			}
		}},
		{name: "a pod that has ended counts no more", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1).patchStatus(kwok, "status.phase", "Failed", "spec.nodeName", "node-0")
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "nor does one that is gone", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1).removePod(operator)
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "one that terminates counts", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1).terminate(30)
			s.seen()
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "but not after its grace period", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1).terminate(30)
			s.wait(31 * time.Second)
			s.tfjob("b", 2).admit()
		}},
		{name: "one that was resized has requests that are not known", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			pod := s.tfjob("a", 2).admit().startWith(1)
			pod.change(admin, "resize", nil)
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "pods of a job that waits count nothing", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2)
			a.enqueue()
			s.wait(time.Minute)
			a.start()
			s.seen()
			s.tfjob("b", 3).admit()
		}, breaks: []string{"early-pod"}},
		{name: "pods that are older than the admission count", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.podOf("x", "default", "old", 2)
			s.errandOf("x", "default", "root/team", 1).admit()
			s.seen()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "the pods of two units of one object count for one of them", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 5}", "{name: team, namespaces: [default]}"))
			s.errandOf("x", "default", "root/team", 2).admit()
			s.errandOf("x", "default", "root/team", 1).admit()
			s.podOf("x", "default", "x-0", 3)
			s.seen()
			s.tfjob("b", 1).admit() // to 2 and 1 admitted, and 1 by pods
		}},
		{name: "and for the other one from then on", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 5}", "{name: team, namespaces: [default]}"))
			first := s.errandOf("x", "default", "root/team", 2).admit()
			s.errandOf("x", "default", "root/team", 1).admit()
			s.podOf("x", "default", "x-0", 3)
			s.seen()
			first.end()
			s.tfjob("b", 2).admit() // to 1 admitted, and 2 by pods
		}},
		{name: "pods of a job whose unit somebody deleted count", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 1)
			a.enqueue()
			a.dequeue()
			a.release()
			a.unit.remove(admin)
			a.startWith(2)
			s.seen()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "a job that was deleted before its admission uses nothing", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(3)
			b := s.tfjob("b", 1)
			b.enqueue()
			s.seen()
			b.job.remove(admin)
			b.dequeue()
		}},
		{name: "pods count through the objects between", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.rayJob(2, 3)
			s.seen()
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "also if these are gone", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.lease()
			cluster := s.rayJob(2, 3)
			s.seen()
			cluster.remove("kuberay")
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "which another process does not know", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease := s.lease()
			cluster := s.rayJob(2, 3)
			s.seen()
			cluster.remove("kuberay")
			s.restart(lease)
			s.tfjob("b", 2).admit()
		}},
		{name: "as it knows those that exist", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease := s.lease()
			s.rayJob(2, 3)
			s.seen()
			s.restart(lease)
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "executors count through their driver", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.errandOf("x", "default", "root/team", 2).admit()
			driver := s.podOf("x", "default", "driver", 1)
			s.podOf(driver.text("metadata.uid"), "default", "executor-1", 1)
			s.podOf(driver.text("metadata.uid"), "default", "executor-2", 1)
			s.seen()
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "of which another process knows only the existing one", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			lease := s.lease()
			s.errandOf("x", "default", "root/team", 1).admit()
			driver := s.podOf("x", "default", "driver", 1)
			s.podOf(driver.text("metadata.uid"), "default", "executor-1", 2)
			s.seen()
			driver.removePod(operator)
			s.restart(lease)
			s.tfjob("b", 3).admit()
		}},
		{name: "just after a change the previous tree justifies", act: func(s *script) {
			tree := s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.seen()
			b := s.tfjob("b", 1)
			b.enqueue()
			setTree(s, tree, treeOf("max: {cpu: 3}", "{name: team, namespaces: [default]}"))
			b.dequeue()
		}},
		{name: "what does not fit without pods is over its limit, and not by pods", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.seen()
			s.tfjob("b", 3).admit()
		}, breaks: []string{"over-limit"}},
		{name: "a pod of which the log does not show whether it was deleted counts no more", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1).removePod(operator)
			s.fails(504)
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "nor do those of a namespace of which it does not", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.entry(collector, "deletecollection", pods, "", "default", "", 504, nil)
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "but those of another do", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1)
			s.entry(collector, "deletecollection", pods, "", "other", "", 504, nil)
			s.seen()
			s.tfjob("b", 2).admit()
		}, breaks: broken},
		{name: "nor does one that no longer exists", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.tfjob("a", 2).admit().startWith(1).patchStatus(kwok, "status.phase", "Running")
			s.fails(404)
			s.seen()
			s.tfjob("b", 2).admit()
		}},
		{name: "nor one that has a successor", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			a.startWith(1)
			a.pods = a.pods[:1]
			a.startWith(1).removePod(operator)
			s.seen()
			s.tfjob("b", 2).admit()
		}},
	})
}

func TestPodsThatAreLeftOfAJobCount(t *testing.T) {
	broken := []string{"over-limit-by-pods"}
	runStories(t, []story{
		{name: "after its end", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.pods = nil
			a.end()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "until they have ended", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.end()
			s.tfjob("b", 3).admit()
		}},
		{name: "only for what they request", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3)
			a.enqueue()
			a.dequeue()
			a.release()
			a.startWith(1)
			s.seen()
			a.job.remove(admin)
			a.unit.remove(collector)
			s.tfjob("b", 3).admit()
		}},
		{name: "but not as a job", act: func(s *script) {
			s.create(admin, trees, treeOf("max: {cpu: 4, kube-queue/max-jobs: 1}", "{name: team, namespaces: [default]}"))
			a := s.tfjob("a", 1).admit()
			s.seen()
			a.pods = nil
			a.end()
			s.tfjob("b", 3).admit()
		}},
		{name: "while its job is requeued", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.pods = nil
			a.evict()
			s.tfjob("b", 3).admit()
		}, breaks: []string{"over-limit-by-pods", "early-return"}},
		{name: "also one that its operator creates late", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			a.evict()
			a.start()
			s.seen()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "also one that an unknown object creates late", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			s.errandOf("x", "default", "root/team", 2).admit().end()
			s.podOf("x", "default", "late", 2)
			s.seen()
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "but not later than its unit is deleted", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			one := s.errandOf("x", "default", "root/team", 2).admit()
			one.end()
			one.remove(admin)
			s.podOf("x", "default", "late", 2)
			s.seen()
			s.tfjob("b", 3).admit()
		}},
		{name: "together with the next attempt of the job", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 3).admit()
			s.seen()
			left := a.pods[0]
			a.pods = nil
			a.evict()
			a.dequeue()
			a.release()
			left.removePod(operator)
		}, breaks: []string{"early-return"}},
		{name: "at the group that admitted it", act: func(s *script) {
			tree := s.create(admin, trees, treeOf(unlimited, "{name: team, namespaces: [default], max: {cpu: 4}}"))
			a := s.tfjob("a", 2).admit()
			a.pods = nil
			a.end()
			s.becomes(tree, unlimited, "{name: team, namespaces: [other], max: {cpu: 4}}")
			s.errand("other", "root/team", 3).admit()
		}, breaks: broken},
		{name: "after it was deleted", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.job.remove(admin)
			a.unit.remove(collector)
			s.tfjob("b", 3).admit()
		}, breaks: broken},
		{name: "and pods that it gets after they are gone do not", act: func(s *script) {
			s.create(admin, trees, fourCPU)
			a := s.tfjob("a", 2).admit()
			s.seen()
			a.job.remove(admin)
			a.unit.remove(collector)
			a.pods[0].removePod(collector)
			a.startWith(2)
			s.seen()
			s.tfjob("b", 3).admit()
		}},
	})
}

// The most that pods can add is summed while they change. At each write it is the sum over all of them.
func TestGrownIsTheSumOfAllGrowths(t *testing.T) {
	s := newScript(t)
	lease, tree := s.lease(), s.create(admin, trees, treeOf(unlimited, "{name: team, namespaces: [default]}"))
	a, b := s.tfjob("a", 2).admit(), s.tfjob("b", 1).admit()
	a.startWith(3)
	b.startWith(1).terminate(30)
	a.unit.patch(extensions, "spec.resource", map[string]any{"cpu": "1"})
	s.becomes(tree, unlimited, "{name: other, namespaces: [default, other]}")
	a.orphan()
	s.restart(lease)
	b.pods[1].removePod(operator)
	b.end()
	again := s.tfjob("a", 1)
	again.enqueue()
	again.dequeue()
	a.pods[0].removePod(admin)
	a.pods[1].removePod(admin)
	o, err := Options{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	most := new(big.Int)
	w := s.log().Replay(o, func(w *model.World, c *model.Change) {
		for _, r := range w.Forest.Reigns {
			used := w.UsageOf(r)
			sums := used.Above(w.Growths(func(*model.Pod) bool { return true }))
			for _, n := range used.Tree.Nodes {
				if d := used.Grown[n].Differences(sums[n], "counted", "the sum is"); d != "" {
					t.Errorf("line %d: node %s: %s", c.Write.Line, n.Path, d)
				}
				if sum := sums[n].Get("cpu"); sum.Cmp(most) > 0 {
					most = sum
				}
			}
		}
	})
	if n := len(w.Growths(func(*model.Pod) bool { return true })); n > 0 || most.Cmp(big.NewInt(6000)) != 0 {
		t.Errorf("%d growths at the end, and at most %s, want 0 and 6000", n, most)
	}
}
