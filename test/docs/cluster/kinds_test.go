package cluster

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"kube-queue.dev/kube-queue/test/harness"
)

const (
	kindPages = "docs/tasks/run-*.md"
	sparkPage = "docs/tasks/run-sparkapplication.md"
	podsPage  = "docs/tasks/run-pods.md"
)

func isKind(page string) bool { return strings.HasPrefix(page, "docs/tasks/run-") }

// runKinds runs the pages of all kinds at the same time. Each has its own namespace, with the quota of namespace
// research on the page.
func runKinds(t *testing.T, env *harness.Env) {
	pages, err := fs.Glob(os.DirFS(suite.Repository), kindPages)
	harness.Must(t, err)
	var groups []string
	for i := range pages {
		groups = append(groups, fmt.Sprintf("{name: %[1]s, namespaces: [%[1]s], max: {cpu: 12, kube-queue/max-jobs: 2}}", kindNamespace(i)))
	}
	env.For(t).ApplyAsIs("apiVersion: scheduling.sigs.k8s.io/v1beta1\nkind: ElasticQuotaTree\n" +
		"metadata: {name: elasticquotatree, namespace: kube-system}\n" +
		"spec: {root: {name: company, children: [" + strings.Join(groups, ", ") + "]}}\n")
	for i, page := range pages {
		t.Run(name(page), func(t *testing.T) {
			t.Parallel()
			part := suite.Part(t, kindNamespace(i))
			if page == sparkPage {
				part.Apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: spark-operator-spark}\n")
			}
			if page == podsPage {
				runPods(newScene(t, part, page))
			} else {
				runKind(newScene(t, part, page))
			}
		})
	}
}

// kindNamespace is as long as pageNamespace.
func kindNamespace(i int) string { return fmt.Sprintf("kinds-%02d", i+1) }

// runKind follows a page: a job waits for one of two others.
func runKind(s *scene) {
	occupy(s.t, s.Env)
	s.run("kubectl apply")
	s.run("kubectl get")
	finish(s.Env, "train-a")
	s.run("kubectl get")
	s.rest()
}

// runPods follows the page about pods. Its first manifest is a file that the reader saves.
func runPods(s *scene) {
	occupy(s.t, s.Env)
	s.write("pod.yaml", s.page.Manifests[0])
	s.run("kubectl apply")
	s.run("kubectl get")
	s.run("why")
	finish(s.Env, "train-a")
	s.run("kubectl get")
	s.rest()
}
