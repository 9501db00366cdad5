package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var byResourceQuota = Options{ResourceQuota: true}

// resultOf returns the result of one check.
func resultOf(t *testing.T, s *script, options Options, name string) Check {
	t.Helper()
	report, err := s.log().Check(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %s", name)
	return Check{}
}

const (
	team     = "children: [{name: team, namespaces: [default]}]"
	finished = "r status kuberay jobDeploymentStatus=Complete jobStatus=SUCCEEDED; "
)

func TestOverLimit(t *testing.T) {
	const ray = "tree; r:3r enqueue, dequeue; r patch extensions spec.suspend=false; c make raycluster kuberay {metadata: {ownerReferences: [$r]}, spec: {}}; " + finished
	tellAll(t, Options{}, []story{
		{"one after the other fits", "tree; a:3 admit, end; b:3 admit, end", ""},
		{"two at once do not", "tree; a:3 admit; b:3 admit", "over-limit"},
		{"a unit that ended without its job is early", "tree; a:3 admit, endunit; b:3 admit; a finish", "ended-too-early"},
		{"a job that ended no longer counts, even before its unit says so", "tree; a:3 admit, finish; b:3 admit; a endunit", ""},
		{"a job that was deleted no longer counts", "tree; a:3 admit, remove admin; b:3 admit; a.unit remove collector", ""},
		{"the answer to a delete may come late", "tree; a:3 admit; b:3 enqueue; mark; a remove admin; answered 1s; b dequeue, release; a.unit remove collector", ""},
		{"an evicted job counts until it is suspended and requeued", "tree; a:3 admit, evict; b:3 admit", ""},
		{"an eviction that is only decided frees nothing", "tree; a:3 admit; a.unit conditions controller Evicted=True/Preempted; b:3 admit", "over-limit"},
		{"a job that is still suspended does not free what its unit has", "tree; a:3 enqueue; b:3 enqueue; a dequeue; b dequeue", "over-limit"},
		{"every ancestor counts", "tree max: {cpu: 2}, children: [{name: team, namespaces: [default], max: {cpu: 9}}]; a:3 admit", "over-limit"},
		{"max-jobs counts units", "tree max: {kube-queue/max-jobs: 1}, " + team + "; a:1 admit; b:1 admit", "over-limit"},
		{"what max does not name is unlimited, 0 is none", "tree max: {memory: 0}, children: [{name: team, namespaces: [default], max: {nvidia.com/gpu: 0}}]; a:100 admit", ""},
		{"just after a change the old tree justifies", "tree; a:3 enqueue; becomes max: {cpu: 1}, " + team + "; a dequeue", ""},
		{"later it does not", "tree; a:3 enqueue; later max: {cpu: 1}, " + team + "; a dequeue", "over-limit"},
		{"a quota that shrinks under its use is no fault", "tree; a:3 admit; later max: {cpu: 1}, " + team, ""},
		{"an invalid tree leaves the last good one in force", "tree; later max: {cpu: 100}, min: {cpu: 200}, " + team + "; a:5 admit", "over-limit"},
		{"a younger tree does not count", "tree; wait 2s; other make tree admin {metadata: {namespace: kube-system}, spec: {root: {name: root, max: {cpu: 100}, " + team + "}}}; seen; a:5 admit", "over-limit"},
		{"a tree elsewhere does not count", "other make tree admin {spec: {root: {name: root, max: {cpu: 1}, " + team + "}}}; a:5 admit", ""},
		{"a status write does not change the tree", "tree; tree status controller observedGeneration=1; a:4 admit, end", ""},
		{"a unit of a user's own counts by its phase", "tree; x errand default root/team 3, admit, end; a:3 admit, end; y errand default root/team 5, admit", "over-limit"},
		{"a RayJob counts while its cluster is there", ray + "b:3 admit; c remove kuberay; r endunit", "over-limit"},
		{"a RayJob without its cluster does not", ray + "c remove kuberay; b:3 admit; r endunit", ""},
		{"a unit after a write without an answer is not counted", "tree; a:3 admit; a.unit lost extensions; b:3 admit", ""},
	})
	tellAll(t, Options{Oversell: "1.2"}, []story{
		{"oversell widens a limit and is rounded down", "tree max: {cpu: 4, pods.io/x: 1}, " + team + "; a:2 admit; b:2 admit", ""},
		{"oversell does not go past its own limit", "tree max: {cpu: 4}, " + team + "; a:2 admit; b:3 admit", "over-limit"},
	})
}

func TestUnitsFollowTheTree(t *testing.T) {
	const (
		a      = "{name: a, namespaces: [a], max: {cpu: 4}}"
		anyA   = "{name: a, namespaces: [a]}"
		anyB   = "{name: b, namespaces: [b]}"
		moved  = "{name: a, namespaces: [elsewhere], max: {cpu: 4}}, {name: b, namespaces: [b, a], max: {cpu: 4}}"
		rest   = "{name: rest, namespaces: ['*'], max: {cpu: 4}}"
		org    = "{name: org, max: {cpu: 4}, children: [{name: team, children: [" + anyA + "]}, " + anyB + "]}"
		two    = "; b errand b root/org/b 2, admit"
		inTeam = "; x errand a root/org/team/a 3, admit; "
	)
	root := func(children ...string) string {
		return "max: {}, children: [" + strings.Join(children, ", ") + "]"
	}
	under := func(name, children string) string {
		return fmt.Sprintf("{name: %s, max: {cpu: 4}, children: [%s]}", name, children)
	}
	x3 := "; x errand a root/a 3, admit; "
	tellAll(t, Options{}, []story{
		{"a quota lowered under its use admits nothing, however little", "tree " + root(a) + x3 + "later " + root("{name: a, namespaces: [a], max: {cpu: 2}}") + "; y errand a root/a 1, admit", "over-limit"},
		{"but what fits once enough has ended", "tree " + root(a) + x3 + "later " + root("{name: a, namespaces: [a], max: {cpu: 2}}") + "; x end; y errand a root/a 2, admit", ""},
		{"a raised one admits more", "tree " + root(a) + x3 + "later " + root("{name: a, namespaces: [a], max: {cpu: 6}}") + "; y errand a root/a 3, admit", ""},
		{"a node that moved counts under its new parent", "tree " + root(under("left", anyA), under("right", anyB)) + "; x errand a root/left/a 3, admit; later " +
			root(under("left", ""), under("right", anyB+", "+anyA)) + "; y errand b root/right/b 2, admit", "over-limit"},
		{"and no longer under the old one", "tree " + root(under("left", anyA+", "+anyB), under("right", "")) + "; x errand a root/left/a 3, admit; later " +
			root(under("left", anyB), under("right", anyA)) + "; y errand b root/left/b 4, admit", ""},
		{"a namespace that moved takes its use along", "tree " + root(a, anyB) + x3 + "later " + root(moved) + "; y errand b root/b 2, admit", "over-limit"},
		{"and leaves the room behind it", "tree " + root(a, anyB) + x3 + "later " + root(moved) + "; y errand elsewhere root/a 4, admit", ""},
		{"it waits at its new group", "tree " + root(a, anyB) + "; later " + root(moved) + "; y errand a root/a 1, admit", "wrong-quota"},
		{"one that falls to the star counts there", "tree " + root(a, rest) + x3 + "later " + root(rest) + "; y errand other root/rest 2, admit", "over-limit"},
		{"a renamed node keeps its use", "tree " + root(a) + x3 + "later " + root("{name: crew, namespaces: [a], max: {cpu: 4}}") + "; y errand a root/crew 2, admit", "over-limit"},
		{"a removed group counts at the root at least", "tree max: {cpu: 4}, children: [" + anyA + "," + anyB + "]" + x3 + "later max: {cpu: 4}, children: [" + anyB + "]; y errand b root/b 2, admit", "over-limit"},
		{"and is given back there when it ends", "tree max: {cpu: 4}, children: [" + anyA + "," + anyB + "]" + x3 + "later max: {cpu: 4}, children: [" + anyB + "]; x end; y errand b root/b 4, admit", ""},
		{"at the parent when the parent is left", "tree " + root(org) + inTeam + "later " + root(under("org", "{name: team}, "+anyB)) + two, "over-limit"},
		{"at the one above when the parent is gone too", "tree " + root(org) + inTeam + "later " + root(under("org", anyB)) + two, "over-limit"},
		{"and not at others beside it", "tree " + root(org, under("more", "{name: o, namespaces: [o]}")) + inTeam + "later " + root(under("org", anyB), under("more", "{name: o, namespaces: [o]}")) + "; y errand o root/more/o 4, admit", ""},
		{"a name that only begins alike is another node", "tree " + root(under("teams", anyA)) + "; x errand a root/teams/a 3, admit; later " + root("{name: team, namespaces: [b], max: {cpu: 4}}") + "; y errand b root/team 4, admit", ""},
		{"the node itself, where it only lost its namespaces", "tree " + root(a) + x3 + "later " + root("{name: a, namespaces: [b], max: {cpu: 4}}") + "; y errand b root/a 2, admit", "over-limit"},
		{"also where its label names a node that is gone", "tree max: {cpu: 4}, children: [" + anyA + ", {name: spare, namespaces: [a]}]; x errand a root/spare 3; x.unit patch admin spec.quotaName=spare; x admit; later max: {cpu: 4}, children: [" +
			anyA + "]; y errand a root/a 2, admit", "over-limit"},
		{"as one of max-jobs too", "tree max: {kube-queue/max-jobs: 1}, children: [" + anyA + ", " + anyB + "]; x errand a root/a 1, admit; later max: {kube-queue/max-jobs: 1}, children: [" + anyB + "]; y errand b root/b 1, admit", "over-limit"},
		{"a group that comes back has it again", "tree " + root(org) + inTeam + "later " + root(under("org", anyB)) + "; later " + root(under("org", anyB), "{name: team, children: ["+a+"]}") +
			"; y errand b root/org/b 4, admit; z errand a root/team/a 2, admit", "over-limit"},
	})
}

func TestWrongQuota(t *testing.T) {
	const two = "tree max: {cpu: 40}, children: [{name: team, namespaces: [default]}, {name: other, namespaces: [default]}, {name: rest, namespaces: ['*']}]; a:1 enqueue; "
	const elsewhere = "tree max: {cpu: 40}, children: [{name: team, namespaces: [elsewhere]}"
	as := func(path string) string { return "a.unit status controller phase=Dequeued quota=" + path }
	tellAll(t, Options{}, []story{
		{"the first in tree order has the namespace", two + as("root/team"), ""},
		{"and no other", two + as("root/other"), "wrong-quota"},
		{"a name picks another", two + "a.unit patch extensions spec.quotaName=other; " + as("root/other"), ""},
		{"so does a path", two + "a.unit patch extensions spec.quotaName=root/other; " + as("root/other"), ""},
		{"a path of a node that does not list it is refused", two + "a.unit patch extensions spec.quotaName=root/rest; " + as("root/rest"), "wrong-quota"},
		{"a name of a node that does not list it is refused", two + "a.unit patch extensions spec.quotaName=rest; " + as("root/rest"), "wrong-quota"},
		{"a star takes what no other lists", elsewhere + ", {name: rest, namespaces: ['*']}]; a:1 enqueue; " + as("root/rest"), ""},
		{"where no node lists it, nothing is admitted", elsewhere + "]; a:1 enqueue; " + as("root/team"), "wrong-quota"},
	})
	tellAll(t, byResourceQuota, []story{
		{"its namespace is right", "q quota {requests.cpu: '4'}; a:1 admit", ""},
		{"anything else is not", "q quota {requests.cpu: '4'}; a:1 enqueue; " + as("root/team"), "wrong-quota"},
	})
}

func TestOverLimitByPods(t *testing.T) {
	const grown = "tree; a:2 admit, start 1; "
	const ray = "r:2r enqueue, dequeue; r patch extensions spec.suspend=false; c make raycluster kuberay {metadata: {ownerReferences: [$r]}, spec: {}}; c0 of c 1; c1 of c 1; c2 of c 1; seen; "
	const memory = "m make pod operator {metadata: {ownerReferences: [$a]}, spec: {containers: [{name: main, resources: {requests: {memory: 3}}}]}, status: {phase: Pending}}; seen; "
	tellAll(t, Options{}, []story{
		{"pods within what was admitted add nothing", "tree; a:2 admit; seen; b:2 admit", ""},
		{"a job that has grown is charged for all its pods", grown + "seen; b:2 admit", "over-limit"},
		{"what fits beside them is admitted", grown + "seen; b:1 admit", ""},
		{"a pod that was just created need not be counted", grown + "wait 1s; b:2 admit", ""},
		{"a pod replaces what was admitted resource by resource", "tree max: {cpu: 4, memory: 4}, " + team + "; a:1 admit, start 0; a.1 patch kwok spec.nodeName=node-0; " + memory +
			"b:1 enqueue; b.unit patch extensions spec.resource={cpu: '1', memory: '2'} spec.podSets=-; b dequeue", "over-limit"},
		{"only resources that are requested are compared", "tree max: {cpu: 4, memory: 2}, " + team + "; a:1 admit; " + memory + "b:1 admit", ""},
		{"a type of device that only the programs compute counts as admitted", "tree max: {gpu/h100: 2}, " + team + `;
			a:1 enqueue; a.unit patch extensions spec.resource={cpu: '1', gpu/h100: '1'} spec.podSets=-; a dequeue, release, start, start 1; seen;
			b:1 enqueue; b.unit patch extensions spec.resource={cpu: '1', gpu/h100: '1'} spec.podSets=-; b dequeue, release, start, start 1`, ""},
		{"a pod that has ended counts no more", grown + "a.1 status kwok phase=Failed; seen; b:2 admit", ""},
		{"nor does one that waits at a gate", grown + "a.1 patch admin spec.schedulingGates=[{name: gate}]; seen; b:2 admit", ""},
		{"nor does one that is gone", grown + "a.1 removepod training-operator; seen; b:2 admit", ""},
		{"one that terminates counts", grown + "a.1 terminate training-operator 30; seen; b:2 admit", "over-limit"},
		{"but not after its grace period", grown + "a.1 terminate training-operator 30; wait 31s; b:2 admit", ""},
		{"one that was resized has requests that are not known", grown + "a.1 resize admin; seen; b:2 admit", ""},
		{"pods of a job that waits count nothing", "tree; a:2 enqueue; wait 60s; a start; seen; b:3 admit", "early-pod"},
		{"pods that are older than the admission count", "tree; x0 of x 2; x errand default root/team 1 x, admit; seen; b:3 admit", "over-limit"},
		{"the pods of two units of one object count once", "tree max: {cpu: 5}, " + team + "; x errand default root/team 2 x, admit; y errand default root/team 1 x, admit; x0 of x 3; seen; b:1 admit", ""},
		{"and for the other one from then on", "tree max: {cpu: 5}, " + team + "; x errand default root/team 2 x, admit; y errand default root/team 1 x, admit; x0 of x 3; seen; x end; b:3 admit", "over-limit"},
		{"pods of a job whose unit somebody deleted count", "tree; a:1 enqueue, dequeue, release; a.unit remove admin; a start 2; seen; b:3 admit", "over-limit"},
		{"a job that was deleted before its admission uses nothing", "tree; a:2 admit, start 3; b:1 enqueue; seen; b remove admin; b dequeue", ""},
		{"pods count through the objects between", "tree; " + ray + "b:2 admit", "over-limit"},
		{"also if these are gone", "tree; lease; " + ray + "c remove kuberay; b:2 admit", "over-limit"},
		{"which another process does not know", "tree; lease; " + ray + "c remove kuberay; restart; b:2 admit", ""},
		{"as it knows those that exist", "tree; lease; " + ray + "restart; b:2 admit", "over-limit"},
		{"executors count through their driver", "tree; x errand default root/team 2 x, admit; d of x 1; e of d 1; f of d 1; seen; b:2 admit", "over-limit"},
		{"of which another process knows only the existing one", "tree; lease; x errand default root/team 1 x, admit; d of x 1; e of d 2; seen; d removepod training-operator; restart; b:3 admit", ""},
		{"just after a change the previous tree justifies", grown + "seen; b:1 enqueue; becomes max: {cpu: 3}, " + team + "; b dequeue", ""},
		{"a pod of which the log does not show whether it was deleted counts no more", grown + "a.1 removepod training-operator; fails 504; seen; b:2 admit", ""},
		{"nor do those of a namespace of which it does not", grown + "lost-collection default; seen; b:2 admit", ""},
		{"but those of another do", grown + "lost-collection other; seen; b:2 admit", "over-limit"},
		{"nor does one that no longer exists", grown + "a.1 status kwok phase=Running; fails 404; seen; b:2 admit", ""},
		{"nor one that has a successor", grown + "n make pod operator {metadata: {name: a-1, ownerReferences: [$a]}, spec: {containers: []}, status: {phase: Pending}}; n removepod training-operator; seen; b:2 admit", ""},
	})
	tellAll(t, Options{PodLag: new(time.Duration)}, []story{{"unless the delay is shorter", grown + "wait 1s; b:2 admit", "over-limit"}})
}

func TestPodsThatAreLeftOfAJobCount(t *testing.T) {
	const orphan = "tree; a:2 admit; seen; a orphan; "
	tellAll(t, Options{}, []story{
		{"after its end", "tree; a:2 admit; seen; a forget, end; b:3 admit", "over-limit"},
		{"until they have ended", "tree; a:2 admit; seen; a end; b:3 admit", ""},
		{"only for what they request", "tree; a:3 enqueue, dequeue, release, start 1; seen; a remove admin; a.unit remove collector; b:3 admit", ""},
		{"but not as a job", "tree max: {cpu: 4, kube-queue/max-jobs: 1}, " + team + "; a:1 admit; seen; a forget, end; b:3 admit", ""},
		{"while its job is requeued", "tree; a:2 admit; seen; a forget, evict; b:3 admit", "over-limit early-return"},
		{"also one that its operator creates late", "tree; a:2 admit, evict, start; seen; b:3 admit", "over-limit"},
		{"also one that an unknown object creates late", "tree; x errand default root/team 2 x, admit, end; x0 of x 2; seen; b:3 admit", "over-limit"},
		{"but not later than its unit is deleted", "tree; x errand default root/team 2 x, admit, end; x.unit remove admin; x0 of x 2; seen; b:3 admit", ""},
		{"together with the next attempt of the job", "tree; a:3 admit; seen; a forget, evict, dequeue, release; a.0 removepod training-operator", "early-return"},
		{"at the group that admitted it", "tree max: {}, children: [{name: team, namespaces: [default], max: {cpu: 4}}]; a:2 admit, forget, end; later max: {}, children: [{name: team, namespaces: [other], max: {cpu: 4}}]; x errand other root/team 3, admit", "over-limit"},
		{"after it was deleted", "tree; a:2 admit; seen; a remove admin; a.unit remove collector; b:3 admit", "over-limit"},
		{"and pods that it gets after they are gone do not", "tree; a:2 admit; seen; a remove admin; a.unit remove collector; a.0 removepod collector; a start 2; seen; b:3 admit", ""},
		// The job was deleted with its pods kept. Its unit is gone, and the pods are charged without it.
		{"an orphan uses quota", orphan + "b:3 admit", "over-limit"},
		{"that is not given out while it is there", orphan + "b:2 admit", ""},
		{"and is free when it is gone", orphan + "a.0 removepod admin; b:3 admit", ""},
		{"the unit of a job that was not deleted is needed, even if its pods are orphans", "tree; a:2 admit; a.0 disown admin; a.unit remove extensions", "unit-deleted"},
		{"another process may not know whose the pods of a deleted unit are", "tree; lease; a:2 admit; seen; a remove admin; a.unit remove collector; restart; b:3 admit", ""},
		{"nor does another process without a lease", "tree; a:2 enqueue, dequeue; by one; a release, start; seen; a remove admin; a.unit remove collector; b:3 enqueue, dequeue; by two", ""},
		{"a unit that exists is known to each process", "tree; lease; a:2 admit; seen; a forget, end; restart; b:3 admit", "over-limit"},
		{"an orphan of a job that was never queued uses no quota", "tree; x0 of x 2; x0 disown admin; seen; b:3 admit", ""},
	})
}

func TestOverLimitOfAResourceQuota(t *testing.T) {
	const four = "q quota {requests.cpu: '4'}; "
	const two = "q quota {pods: '2'}"
	tellAll(t, byResourceQuota, []story{
		{"one after the other fits", four + "a:3 admit, end; b:3 admit, end", ""},
		{"two at once do not", four + "a:3 admit; b:3 admit", "over-limit"},
		{"the unit of a job that is gone takes nothing", four + "a:9 enqueue, remove admin, dequeue", ""},
		{"cpu means requests.cpu", "q quota {cpu: 4}; a:5 admit", "over-limit"},
		{"limits count by themselves", "q quota {limits.cpu: 4}; a:1 enqueue; a.unit patch extensions spec.podSets=[{name: worker, count: 1, requests: {cpu: '1'}, limits: {cpu: '5'}}]; a dequeue", "over-limit"},
		{"pods count", two + "; a:1 admit; b:1 admit; c:1 admit", "over-limit"},
		{"every quota of the namespace counts", four + "r quota {requests.cpu: 2}; a:3 admit", "over-limit"},
		{"what no quota names is unlimited, and so is another namespace", `q quota {requests.memory: 1, configmaps: 0, count/jobs.batch: 0, requests.example.com/x: 0};
			o make quota admin {metadata: {namespace: other}, spec: {hard: {cpu: 0}}}; a:100 admit`, ""},
		{"the lower of spec and status is the limit", four + "q patch admin spec.hard={requests.cpu: '9'}; seen; a:5 admit", "over-limit"},
		{"just after a cut the limit before justifies", four + "a:3 enqueue; q patch admin spec.hard={requests.cpu: '1'}; a dequeue", ""},
		{"later it does not", four + "q patch admin spec.hard={requests.cpu: '1'}; seen; a:3 admit", "over-limit"},
		{"a quota that is gone limits nothing", four + "q remove admin; a:9 admit", ""},
		{"nor does one whose deletion returned it as it was", four + "q deleted admin; seen; a:9 admit", ""},
		{"one that was made just now need not be known", "q undecided {requests.cpu: '4'}; a:9 admit", ""},
		{"without a status nothing is to be released", "q undecided {requests.cpu: '4'}; seen; a:1 admit", "over-limit"},
		{"pods of others count", four + "s stranger 2; seen; a:3 admit", "over-limit"},
		{"but not before they can be known", four + "s stranger 2; a:3 admit", ""},
		{"nor once they have ended, or are gone", four + "s stranger 2; u stranger 2; seen; s status kwok phase=Failed; u removepod admin; a:4 admit", ""},
		{"those that have ended are still there", "q quota {count/pods: 1}; s stranger 2; s status kwok phase=Failed; seen; a:1 admit", "over-limit"},
		{"nor what was on its way out when the unit was admitted", four + "s stranger 3; seen; a:3 enqueue; mark; a dequeue; s removepod kwok; requested -1ms", ""},
		{"but what leaves after the admission", four + "s stranger 3; seen; a:3 enqueue; mark; a dequeue; s removepod kwok; requested 1ms", "over-limit"},
		{"nor what is past its time to go", four + "s stranger 3; s patch admin metadata.finalizers=[x/y]; s terminate admin 1; wait 4s; a:3 admit", ""},
		{"nor those on nodes that a collection deletes at once", four + "s stranger 3; s patch admin spec.nodeName=node-1; seen; s collectnow admin; a:3 admit", ""},
		{"also if they had finalizers when it read them", four + "s stranger 3; s patch admin spec.nodeName=node-1 metadata.finalizers=[x/y]; seen; s collectnow admin; a:3 admit", ""},
		{"but those that it gives time", four + "s stranger 3; s patch admin spec.nodeName=node-1; seen; s collection admin; a:3 admit", "over-limit"},
		{"pods of a job that holds quota count with it", four + "a:2 admit; seen; b:2 admit", ""},
		{"but for those by which it has grown", four + "a:2 admit, start; seen; b:1 admit", "over-limit"},
		{"pods that outlive their job count", four + "a:3 admit, forget, end; seen; b:3 admit", "over-limit"},
		{"a resized pod is not checked by what it was", four + "s stranger 3; s resize admin; seen; a:3 admit", ""},
		{"a quota that counts only some pods is not checked", two + " {scopes: [NotTerminating]}; a:1 admit; b:1 admit; c:1 admit", ""},
	})
}

func TestAdmissionsWithoutAResourceQuotaAreNotChecked(t *testing.T) {
	s := newScript(t)
	s.group = "default"
	s.tell("a:1 admit; q quota {requests.cpu: '4'}; b:1 admit")
	if c := resultOf(t, s, byResourceQuota, "over-limit"); c.Checked != 1 || c.NotChecked != 1 || len(c.Notes) != 1 {
		t.Errorf("checked %d, not checked %d, notes %q", c.Checked, c.NotChecked, c.Notes)
	}
}

// The unit of a batch Job of four pods is admitted with two of them.
func TestAJobThatStartsWithFewerPodsIsChargedForThem(t *testing.T) {
	admitted := func(limit string) string {
		return "tree max: {cpu: '9'}, children: [{name: team, namespaces: [default], max: {cpu: '" + limit + `'}}]; a:4b enqueue;
			a.unit patch extensions spec.podSets=[{name: main, count: 4, minCount: 2, requests: {cpu: '1'}}];
			a.unit status controller phase=Dequeued quota=root/team attempts=1 admittedPodSets=[{name: main, count: 2}]`
	}
	tellAll(t, Options{}, []story{
		{"which fit", admitted("2"), ""},
		{"or do not fit", admitted("1"), "over-limit"},
	})
}
