package audit

import "testing"

func TestNoPodBeforeTheRelease(t *testing.T) {
	tellAll(t, Options{}, []story{
		{"a job that is held, released and ends breaks nothing", "tree; a:3 admit, end", ""},
		{"a pod before the release is early", "tree; a:3 enqueue, start", "early-pod"},
		{"a pod of a held job without a unit is early", "a:3 start", "early-pod"},
		{"a pod that is early by revision is so whatever the order of the lines", "tree; a:3 enqueue, dequeue, start, release; swap", "early-pod"},
		{"lines out of order alone are nothing", "tree; a:3 enqueue, dequeue, release, start; swap", ""},
		{"a job that opted in but is not suspended was not held", "a make tfjob admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {}}", "hold-missed"},
		{"a JobSet with groups that opted in but is not suspended was not held",
			"a make jobset admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {replicatedJobs: [{name: w}]}}", "hold-missed"},
		{"an annotation that stays while the suspend field goes was not held", "a:1 patch admin spec.runPolicy.suspend=false", "hold-missed"},
		{"nobody holds what another queue has, what a job controls and what cannot be held", `
			a make tfjob admin {metadata: {labels: {kueue.x-k8s.io/queue-name: q}, annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {}};
			b make tfjob admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {runPolicy: {managedBy: kueue.x-k8s.io/multikueue}}};
			c make job admin {metadata: {ownerReferences: [{kind: JobSet, name: j, uid: u, controller: true}], annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {suspend: false}};
			d make rayjob admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {clusterSelector: {a: b}}};
			e make jobset admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {network: {}}}`, ""},
		{"a Job of a CronJob is held as any other", `c make job system:kube-controller-manager
			{metadata: {ownerReferences: [{kind: CronJob, name: j, uid: u, controller: true}], annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {suspend: false}}`, "hold-missed"},
		{"a job that nobody queues may do as it likes", "a make tfjob admin {spec: {}}; a start 100", ""},
		{"after an eviction pods are early again, when the operator has had its time", "tree; a:3 admit, evict, start; a.1 removepod training-operator; seen; a start", "early-pod"},
		{"a pod of a job is found through its owners", "r:1r held; b make job kuberay {metadata: {ownerReferences: [$r]}, spec: {}}; b start", "early-pod"},
		{"a RayCluster of a held RayJob is early, and so is its pod", "r:1r held; c make raycluster kuberay {metadata: {ownerReferences: [$r]}, spec: {}}; c start", "early-cluster early-pod"},
		{"a Spark driver is found by its label, an executor by its driver", `
			pi make spark admin {metadata: {annotations: {scheduling.x-k8s.io/suspend: 'true'}}, spec: {suspend: true}};
			driver make pod spark {metadata: {labels: {sparkoperator.k8s.io/app-name: pi}}, spec: {containers: []}, status: {phase: Pending}}; driver start`, "early-pod"},
		{"a Workflow opts in by its template, and not by suspend alone", `
			w make workflow admin {spec: {suspend: true, templates: [{name: main}]}}; w start;
			v make workflow admin {spec: {suspend: true, templates: [{name: kube-queue-suspend, suspend: {}}]}}; v start`, "early-pod"},
		{"a dry run and a refused write are nothing", "a:1 start; dryrun; a.0 conflict training-operator", ""},
	})
}

func TestNoQuotaReturnsBeforeTheJobHasStopped(t *testing.T) {
	const evicted = "tree; a:3 admit; a.unit conditions controller Evicted=True/Preempted; "
	const requeued = "; a.unit conditions extensions Evicted=True/Stopped; a.unit status controller phase=Backoff"
	tellAll(t, Options{}, []story{
		{"suspended, with no pod left, is right", evicted + "a suspend extensions; a.0 removepod training-operator" + requeued, ""},
		{"a pod is left", evicted + "a suspend extensions" + requeued, "early-return"},
		{"the job is not suspended", evicted + "a.0 removepod training-operator" + requeued, "early-return"},
		{"a removal may be complete only afterwards", evicted + "a suspend extensions; a.unit conditions extensions Evicted=True/Stopped; mark; a.unit status controller phase=Backoff; a.0 removepod kwok; requested -1ms", ""},
		{"but not be requested afterwards", evicted + "a suspend extensions; a.unit conditions extensions Evicted=True/Stopped; mark; a.unit status controller phase=Backoff; a.0 removepod kwok; requested 1ms", "early-return"},
		{"a person who resumes a job before it is requeued", `tree; a:3b admit, suspend admin; a.0 removepod training-operator; a.unit conditions extensions Evicted=True/SuspendedByUser;
			a patch admin spec.suspend=false; a.unit status controller conditions=[] phase=Enqueued reason=SuspendedByUser`, "early-return"},
		// Most deletions return an earlier revision. This one is requested while another pod is being removed.
		{"a deletion with an old revision does not move the removal of a pod", `tree; other stranger 1; a:3 admit, finish; gone stranger 1; a endunit; wait 15s; mark;
			gone patch kwok metadata.deletionTimestamp=now+0s metadata.deletionGracePeriodSeconds=0; verb delete; other removepod kwok; requested -1ms`, ""},
	})
}
