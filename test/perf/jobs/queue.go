// Package jobs measures batch Jobs on a complete cluster: completions per second, delays until
// the release and the first pod, and API writes, with or without a queue.
//
// Terms. A queue releases the jobs: kube-queue, none, or another queue that selects its jobs
// by a label. A turn is one batch of jobs in one queue, from the first create until no more
// writes happen. Turns of several queues run one after the other on one cluster, so that
// all of them use the same machine. An outcome is the result of the turns of one queue.
//
// Invariants. The jobs of all queues are equal except for the mark by which the queue selects
// them. Each turn starts in a clean state, after a few jobs that do not count. Programs of
// other queues do not run during a turn, and the admission policies of kube-queue are only
// installed for kube-queue. Delays are taken from the audit log, the end of jobs from a
// watch.
package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Names of the queues without a label.
const (
	None      = "none"
	KubeQueue = "kube-queue"
)

// Queue is a queue that releases jobs.
type Queue struct {
	// Name is the queue on the command line.
	Name string
	// key and value are the label of its jobs, if any.
	key, value string
}

// ParseQueue parses none, kube-queue or label:KEY=VALUE.
func ParseQueue(text string) (Queue, error) {
	if text == None || text == KubeQueue {
		return Queue{Name: text}, nil
	}
	label, ok := strings.CutPrefix(text, "label:")
	key, value, pair := strings.Cut(label, "=")
	if !ok || !pair || key == "" || value == "" {
		return Queue{}, fmt.Errorf("unknown queue %q; known queues: %s, %s and label:KEY=VALUE", text, None, KubeQueue)
	}
	return Queue{Name: text, key: key, value: value}, nil
}

// Labelled reports whether the queue selects its jobs by a label, unlike kube-queue and none.
func (q Queue) Labelled() bool { return q.key != "" }

// runTimeAnnotation sets how long a pod runs on a simulated node.
const runTimeAnnotation = "localcluster.kube-queue.dev/run-time"

type object = map[string]any

// job returns the manifest of a job with one pod with one small container.
func (q Queue) job(name string, runTime time.Duration) ([]byte, error) {
	metadata := object{"name": name, "namespace": Namespace}
	switch {
	case q.Name == KubeQueue:
		metadata["annotations"] = object{"scheduling.x-k8s.io/suspend": "true"}
	case q.key != "":
		metadata["labels"] = object{q.key: q.value}
	}
	return json.Marshal(object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
		"spec": object{
			"suspend": q.Name != None,
			"template": object{
				"metadata": object{"annotations": object{runTimeAnnotation: runTime.String()}},
				"spec": object{
					"restartPolicy": "Never",
					"containers": []object{{
						"name": "main", "image": "none",
						"resources": object{"requests": object{"cpu": "100m", "memory": "16Mi"}},
					}},
				},
			},
		},
	})
}

// tree returns the quota tree. Without a limit on jobs it has a cpu limit that is
// never reached, so that the quota is still computed.
func tree(room int) string {
	limit := "cpu: 1000000"
	if room > 0 {
		limit += fmt.Sprintf(", kube-queue/max-jobs: %d", room)
	}
	return `
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: perf, namespace: kube-system}
spec:
  root:
    name: root
    children:
    - {name: jobs, namespaces: [` + Namespace + `], max: {` + limit + `}}
`
}
