package audit

import (
	"strings"
	"testing"
	"time"
)

func TestReleases(t *testing.T) {
	tellAll(t, Options{}, []story{
		{"a release for each dequeue is right", "tree; a:3 admit, evict; seen; a dequeue, release, start, end", ""},
		{"a release without one is not", "tree; a:3 enqueue, release", "release-without-dequeue"},
		{"nor is one without a unit", "a:3 release", "release-without-dequeue"},
		{"a second release for one dequeue is reported", "tree; a:3b enqueue, dequeue, release, suspend admin, release", "double-release"},
		{"unless somebody changed for which it was released", "tree; a:3b enqueue, dequeue, release, suspend admin; a patch admin metadata.annotations={kube-queue/released: '7'}; a release", ""},
		{"a person may release by hand, and the job be held again", "tree; a:3b enqueue; a patch admin spec.suspend=false; a suspend extensions, dequeue, release", ""},
		{"a unit is not dequeued again before it gave back", "tree; a:3 enqueue, dequeue, dequeue", "double-dequeue"},
	})
}

func TestHeldAfterEnd(t *testing.T) {
	const abandoned = "tree; a:3 admit, remove admin; a.unit status extensions phase=Running reason=PodsRemain; wait 60s; "
	tellAll(t, Options{}, []story{
		{"a unit that ends soon after its job is right", "tree; a:3 admit, finish; wait 5s; a endunit; wait 60s; b:1 event", ""},
		{"a write that changes nothing has the revision of an earlier one, and not its time", "tree; a:3 admit, finish; b:1 held; a endunit; wait 15s; b repeat training-operator", ""},
		{"a write may be stored long before it is answered", "tree; a:3 admit, finish; b:1 event; b patch training-operator; mark; answered 15s; a endunit", ""},
		{"one that ends late is reported", "tree; a:3 admit, finish; wait 11s; a endunit", "held-after-end"},
		{"one that never ends is reported", "tree; a:3 admit, finish; wait 60s; b:1 event", "held-after-end"},
		{"at the end of the log only what is overdue is reported", "tree; a:3 admit, finish; wait 1s", ""},
		{"a unit whose job is gone may show that pods are left", abandoned + "a.0 removepod admin; wait 19s; a.unit remove extensions", ""},
		{"but must show it", "tree; a:3 admit, remove admin; a.unit status extensions phase=Running; wait 60s; b:1 event", "held-after-end"},
		{"and only while one is left", abandoned + "a.0 removepod admin; wait 21s; a.unit remove extensions", "held-after-end"},
		{"a unit whose job is gone is reported", "tree; a:3 admit, remove admin; wait 60s; b:1 event", "held-after-end"},
		{"unless it goes too", "tree; a:3 admit, remove admin; a.unit remove collector; wait 60s; b:1 event", ""},
		{"a unit that ends before its job is reported", "tree; a:3 admit, endunit, finish", "ended-too-early"},
		{"so is one that ends otherwise than its job", "tree; a:3 admit, finish; a.unit status extensions phase=Failed", "wrong-end"},
		{"a failed MPIJob goes on until it has a completion time", `tree; m make mpijob admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {runPolicy: {suspend: true}}};
			m admit; m conditions mpi-operator Failed=True/Evicted; m.unit status extensions phase=Failed; m status mpi-operator completionTime=now+0s`, "ended-too-early"},
	})
	tellAll(t, Options{Grace: new(time.Duration)}, []story{{"there may be no grace", "tree; a:3 admit, finish", "held-after-end"}})
}

func TestAnUnreadableUnitIsNotAdmitted(t *testing.T) {
	tellAll(t, Options{}, []story{
		{"it may wait", "tree; a:3 enqueue; a.unit patch extensions spec.resource.cpu=many", ""},
		{"an amount that is no number", "tree; a:3 enqueue; a.unit patch extensions spec.resource.cpu=many; a dequeue", "unreadable"},
	})
}

func TestUnitMoves(t *testing.T) {
	const (
		queued  = "tree; a:3 enqueue; "
		pending = "a.unit status controller phase=Reserved quota=root/team admissionChecks=[{name: nodes, state: Pending}]; "
		own     = "tree; o make unit admin {spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t}, resource: {cpu: 1}}}; "
		byHand  = "a.0 removepod training-operator; a.unit conditions extensions Evicted=True/SuspendedByUser; a.unit status controller conditions=[] phase=Enqueued reason=SuspendedByUser; "
		maxTime = "a.unit patch extensions spec.maximumExecutionTimeSeconds=30 status.dequeueTime=now+0s; a dequeue, release, start, runs; "
	)
	tellAll(t, Options{}, []story{
		{"each step by the one who may", queued + "wait 2s; a shows QuotaExceeded; " + pending + "a.unit status admin admissionChecks=[{name: nodes, state: Ready}]; a dequeue, release, start; a.unit status extensions phase=Running; a end", ""},
		{"a reserved unit gives its quota back", queued + pending + "a.unit status controller phase=Backoff; " + pending + "a.unit status controller phase=Enqueued; a dequeue, release, start, end", ""},
		{"a unit is released before its checks are ready", queued + pending + "a dequeue, release, end", "unchecked-release"},
		{"a person moves a unit", queued + "a.unit status admin phase=Dequeued quota=root/team attempts=1", "wrong-writer"},
		{"each program writes only its own steps", queued + "a dequeue; a.unit status controller phase=Running", "wrong-writer"},
		{"a step that is not in the table", queued + "a.unit status extensions phase=Running quota=root/team", "wrong-move"},
		{"the controller corrects a backoff that has ended", queued + "a.unit status controller phase=Backoff reason=Backoff; a shows QuotaExceeded", ""},
		{"nobody else does", queued + "a.unit status extensions phase=Backoff reason=Backoff", "wrong-writer"},
		{"an end is the end", "tree; a:3 admit, end; a.unit status controller phase=Enqueued", "wrong-move"},
		{"requeued without an eviction that is done", queued + "a dequeue; a.unit status controller phase=Enqueued", "wrong-move"},
		{"a deactivated unit is evicted, waits, and is released when it is active again", "tree; a:3 admit; a.unit patch extensions spec.active=false; a evict Deactivated; a.unit patch extensions spec.active=true; a dequeue", ""},
		{"a unit is evicted as deactivated that is active", "tree; a:3 admit, evict Deactivated", "undue-eviction"},
		{"a deactivated unit is released", queued + "a.unit patch extensions spec.active=false; a dequeue", "inactive-dequeue"},
		{"a unit is evicted when it has run for as long as it may", queued + maxTime + "wait 31s; a evict MaximumExecutionTime", ""},
		{"a unit is evicted before", queued + maxTime + "wait 29s; a evict MaximumExecutionTime", "undue-eviction"},
		{"a unit that may run as long as it takes is evicted for its time", "tree; a:3 admit, evict MaximumExecutionTime", "undue-eviction"},
		{"a unit that was admitted is evicted because nobody admitted it", "tree; a:3 admit, evict NotAdmitted", "undue-eviction"},
		{"job-extensions evicts nobody", "tree; a:3 admit; a.unit conditions extensions Evicted=True/Preempted", "wrong-writer"},
		{"a person who suspends a released job has it requeued", "tree; a:3b admit, suspend admin; " + byHand, ""},
		{"a job that changed before its release is requeued", "tree; a:3b enqueue, dequeue; a.unit conditions extensions Evicted=True/JobChanged; a.unit status controller phase=Enqueued reason=JobChanged; a.unit conditions extensions Evicted=False/Requeued", ""},
		{"a job that changed after its release is not", "tree; a:3b admit; a.unit conditions extensions Evicted=True/JobChanged", "wrong-move"},
		{"two units for one job", "a:3 enqueue, enqueue", "twin"},
		{"a unit is deleted while its job is there", "a:3 enqueue; a.unit remove extensions", "unit-deleted"},
		{"a unit is deleted when its job leaves the queue", "a:3 enqueue; a patch admin metadata.annotations=-; a.unit remove extensions", ""},
		{"or says that it is not to be queued", "a:3b enqueue; a patch admin metadata.annotations={scheduling.x-k8s.io/suspend: 'false'}; a.unit remove extensions", ""},
		{"or is given to another queue before its release", queued + "a dequeue; a patch admin metadata.labels={kueue.x-k8s.io/queue-name: q}; a.unit remove extensions", ""},
		{"but that is not for the controller to do", "a:3 enqueue; a patch admin metadata.annotations=-; a.unit remove controller", "unit-deleted"},
		{"nor does a release take the job out of the queue", "tree; a:3 admit; a.unit remove extensions", "unit-deleted"},
		{"nor a person who suspends the released job", "tree; a:3 admit; a patch admin spec.runPolicy.suspend=true; " + byHand + "a.unit conditions extensions Evicted=True/SuspendedByUser; a.unit remove extensions", "unit-deleted"},
		{"a unit ends in the queue when its job has ended", "a:3 enqueue; a conditions training-operator Failed=True; a.unit status extensions phase=Failed", ""},
		{"and after an eviction", "tree; a:3 admit, evict, finish, endunit", ""},
		{"but not before its job", "a:3 enqueue, endunit", "ended-too-early wrong-move"},
		{"and not by the controller", "a:3 enqueue, finish; a.unit status controller phase=Succeeded", "wrong-writer"},
		{"a unit is deleted after its job", "a:3 enqueue, remove admin; a.unit remove extensions", ""},
		{"a person makes a unit for a job of a known kind", "o make unit admin {spec: {consumerRef: {apiVersion: batch/v1, kind: Job, name: t, uid: none}, resource: {cpu: 1}}}", "wrong-writer"},
		{"who makes a unit for a thing of their own ends it", own + "o status controller phase=Dequeued quota=root/team; o status admin phase=Succeeded; o remove admin", ""},
		{"but does not admit it", own + "o status admin phase=Dequeued quota=root/team", "wrong-writer"},
	})
}

func TestTwoLeaders(t *testing.T) {
	const held = "tree; lease; a:3 enqueue; "
	tellAll(t, Options{}, []story{
		{"who holds the lease acts, and then who has taken it", held + "a shows QuotaExceeded; by one; wait 16s; lease.object patch controller spec.holderIdentity=two; by two; a shows QuotaExceeded; by two", ""},
		{"who held it before acts again", held + "lease.object patch controller spec.holderIdentity=two; by two; wait 1s; a shows QuotaExceeded; by one", "two-leaders"},
		{"who does not hold it yet acts already", held + "a shows QuotaExceeded; by two", "two-leaders"},
		{"nobody is bound by a lease that was given up or has run out", held + `wait 16s; a shows QuotaExceeded; by two; lease.object patch controller spec.holderIdentity=two; by two;
			lease.object patch controller spec.holderIdentity=''; by two; a shows QuotaExceeded; by three`, ""},
		{"another program has a lease of its own", held + "b:1 enqueue; by another", ""},
	})
}

func TestWriteBudget(t *testing.T) {
	const (
		short    = "tree; a:3b enqueue, dequeue, release, start, event; "
		long     = short + "wait 3s; a.unit status extensions phase=Running; "
		waits    = "tree; a:3b enqueue; wait 3s; a shows QuotaExceeded, event, dequeue, release, start, event; wait 3s; a.unit status extensions phase=Running; "
		restless = `b:3b enqueue; wait 2s; b shows QuotaExceeded; wait 2s; b shows MaxJobs; wait 2s; b shows QuotaExceeded; wait 2s; b shows MaxJobs; wait 2s; b shows QuotaExceeded, event; `
		andEnds  = "b shows MaxJobs, dequeue, release, start, event; wait 3s; b.unit status extensions phase=Running; b end"
		queue    = "q make queue controller {metadata: {namespace: kube-queue}}; q status controller pending=1; "
	)
	tellAll(t, Options{}, []story{
		{"five when it does not wait", short + "a end", ""},
		{"six are too many then", short + "a event, end", "job-budget"},
		{"six when it runs long", long + "a end", ""},
		{"seven are too many then", long + "a event, end", "job-budget"},
		{"eight when it waits", waits + "a end", ""},
		{"nine are too many then", waits + "a event, end", "job-budget"},
		{"refused writes and those of others do not count", short + "a.unit conflict extensions; a status system:kube-controller-manager active=1; a end", ""},
		{"a changed cause is one more", "tree; a:3b enqueue; wait 2s; a shows QuotaExceeded, event; wait 31s; a shows MaxJobs, dequeue, release, start, event; wait 3s; a.unit status extensions phase=Running; a end", ""},
		{"a queue that is stopped and resumed costs a reason and an event each time", "tree; b:3b enqueue; wait 2s; b shows QuotaExceeded, event, shows QueueStopped, event, shows MaxJobs, event, dequeue, release, start, event, end", ""},
		{"a cause that changes all the time is too many", "tree; a:3b enqueue; " + strings.Repeat("wait 1s; a shows QuotaExceeded, shows MaxJobs; ", 8), "job-budget"},
		{"two causes that take turns all the time are too many", waits + "a end; " + restless + andEnds, "job-budget"},
		{"but not where another controller begins to decide", "lease; " + waits + "a end; " + restless + "lease.object patch controller spec.holderIdentity=two; " + andEnds, ""},
		{"the same controller renewing its lease explains nothing", "lease; " + waits + "a end; " + restless + "lease.object patch controller spec.holderIdentity=one; " + andEnds, "job-budget"},
		{"nor does one that gives it up", "lease; " + waits + "a end; " + restless + "lease.object patch controller spec.holderIdentity=''; " + andEnds, "job-budget"},
		{"two more when its pods have no node for a while", long + "a.unit status controller conditions=[{type: PodsScheduled, status: 'False', message: no node}]; a.unit status controller conditions=[]; a end", ""},
		{"but not to say the same twice", long + "a.unit status controller conditions=[{type: PodsScheduled, status: 'False', message: m, reason: A}]; a.unit status controller conditions=[{type: PodsScheduled, status: 'False', message: m, reason: B}]; a end", "job-budget"},
		{"two more when it is over quota for a while", long + "a.unit conditions controller OverQuota=True; a.unit conditions controller OverQuota=False; a end", ""},
		{"but not to show it twice", long + "a.unit conditions controller OverQuota=True; a.unit conditions controller OverQuota=True/Again; a end", "job-budget"},
		{"one more when its pods are ready after it runs", long + "a.unit conditions extensions PodsReady=True; a end", ""},
		{"but not to show it again", long + "a.unit conditions extensions PodsReady=True; a.unit conditions extensions PodsReady=False; a.unit conditions extensions PodsReady=True; a end", "job-budget"},
		{"a queue's status once in five seconds", queue + "wait 5s; q status controller pending=2; a:1 event", ""},
		{"and not more often", queue + "wait 2s; q status controller pending=2; a:1 event", "status-rate"},
	})
}
