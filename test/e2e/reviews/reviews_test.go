package reviews

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	visibilityv1alpha1 "kube-queue.dev/kube-queue/apis/visibility/v1alpha1"
	"kube-queue.dev/kube-queue/test/harness"
	"kube-queue.dev/kube-queue/test/require"
)

// start starts both programs, and waits until the controller answers reviews.
func start(t *testing.T, env *harness.Env) (controller *harness.Program) {
	t.Helper()
	controller = suite.Program(t, harness.Controller)
	suite.AnswersReviews(t, controller)
	controller.Start()
	suite.Program(t, harness.Extensions, "--enabled-extensions=job").Start()
	answers(t, env)
	return controller
}

// answers waits until reviews are answered.
func answers(t *testing.T, env *harness.Env) {
	t.Helper()
	harness.Eventually(t, time.Minute, "reviews are answered", func() (bool, string) {
		out, err := ask(t, env.Namespace, "", "QueueReview", "{}")
		return err == nil, fmt.Sprint(out, err)
	})
}

// ask creates a review with --dry-run=server, as the user if one is given.
func ask(t *testing.T, namespace, user, kind, spec string) (string, error) {
	t.Helper()
	args := []string{"create", "--dry-run=server", "-n", namespace, "-o", "json", "-f", "-"}
	if user != "" {
		args = append(args, "--as="+user)
	}
	return suite.KubectlWith(t.Context(), "apiVersion: visibility.kube-queue.dev/v1alpha1\nkind: "+kind+"\nmetadata: {name: q}\nspec: "+spec+"\n", args...)
}

// why asks why the unit of a Job waits.
func why(t *testing.T, env *harness.Env, user, job string) *visibilityv1alpha1.QueueUnitReviewStatus {
	t.Helper()
	unit := env.Unit("Job", job)
	out, err := ask(t, env.Namespace, user, "QueueUnitReview", "{unit: "+unit.Name+"}")
	harness.Must(t, err)
	var review visibilityv1alpha1.QueueUnitReview
	harness.Must(t, json.Unmarshal([]byte(out), &review))
	return review.Status
}

func TestReviewsAreAnswered(t *testing.T) {
	env := suite.Env(t, "team-a")
	env.EnsureNamespace("team-b")
	env.ApplyAsIs(`
apiVersion: scheduling.sigs.k8s.io/v1beta1
kind: ElasticQuotaTree
metadata: {name: tree, namespace: kube-system}
spec:
  root:
    name: root
    max: {cpu: 4}
    children:
    - {name: a, namespaces: [team-a], min: {cpu: 1}, max: {cpu: 4}}
    - {name: b, namespaces: [team-b], min: {cpu: 1}, max: {cpu: 4}}
`)
	controller := start(t, env)
	tenant := "alice"
	_, err := suite.Kubectl(t.Context(), "create", "rolebinding", "alice", "-n", "team-a", "--clusterrole=view", "--user="+tenant)
	harness.Must(t, err)

	const mark = `scheduling.x-k8s.io/suspend: "true"`
	env.ApplyAsIs(strings.Replace(harness.MarkedJob("team-b", "secret", "2"), mark, mark+`, scheduling.x-k8s.io/max-exec-time-seconds: "3600"`, 1))
	env.ApplyAsIs(harness.MarkedJob("team-a", "small", "1"))
	env.WaitForPhase("Job", "small", "Running")
	env.ApplyAsIs(harness.MarkedJob("team-a", "large", "3"))
	env.WaitForReason("Job", "large", "QuotaExceeded")

	t.Run("to a tenant without names of others", func(t *testing.T) {
		for _, question := range []struct{ kind, spec, answer string }{
			{"QueueUnitReview", "{unit: " + env.Unit("Job", "large").Name + "}", "root"},
			{"QueueReview", "{allNamespaces: true}", "root-a"},
			{"QueueReview", "{allNamespaces: true, show: Groups, limit: 1000}", "large"},
			{"QueueReview", "{allNamespaces: true, show: Units, limit: 1000}", "large"},
			{"QueueReview", "{queue: root-b, allNamespaces: true, show: Units}", "root-b"},
			{"QuotaReview", "{}", "root/a"},
		} {
			out, err := ask(t, "team-a", tenant, question.kind, question.spec)
			harness.Must(t, err)
			if strings.Contains(out, "secret") || strings.Contains(out, "team-b") {
				t.Errorf("%s %s names what the tenant may not see:\n%s", question.kind, question.spec, out)
			}
			require.Says(t, question.kind+" "+question.spec, out, question.answer)
		}
		answer := why(t, env, tenant, "large")
		if len(answer.Holders) != 2 || answer.Holders[0].HiddenUnits+answer.Holders[1].HiddenUnits != 1 || len(answer.HoldingUnits) != 1 {
			t.Errorf("the answer is %+v", answer)
		}
	})
	t.Run("with an estimate of the start", func(t *testing.T) {
		start := why(t, env, tenant, "large").Start
		if start == nil {
			t.Fatal("there is none")
		}
		if in := time.Until(start.Time.Time); in < 45*time.Minute || in > time.Hour || start.Earliest.After(start.Time.Time) || start.Latest.Before(&start.Time) {
			t.Errorf("a job that waits for one with a limit of an hour starts in %v: %+v", in, start)
		}
		if out, err := ask(t, "team-a", tenant, "QueueReview", "{show: Units}"); err != nil || strings.Count(out, `"earliest"`) != 1 {
			t.Errorf("error %v:\n%s", err, out)
		}
	})
	t.Run("to nobody without rights", func(t *testing.T) {
		for _, namespace := range []string{"team-b", "kube-system"} {
			if out, err := ask(t, namespace, tenant, "QueueReview", "{}"); err == nil || !strings.Contains(err.Error(), "forbidden") {
				t.Errorf("in namespace %s: %v\n%s", namespace, err, out)
			}
		}
	})
	t.Run("and nothing else notices that nobody answers", func(t *testing.T) {
		controller.Stop()
		env.EnsureNamespace("short-lived")
		began := time.Now()
		_, err := suite.Kubectl(t.Context(), "delete", "namespace", "short-lived", "--timeout=30s")
		harness.Must(t, err)
		t.Logf("a namespace was deleted in %v", time.Since(began))
		for _, args := range [][]string{{"api-resources"}, {"get", "all", "-A"}, {"get", "queueunits", "-A"}} {
			out, err := suite.Kubectl(t.Context(), args...)
			if err != nil || strings.Contains(strings.ToLower(out), "unable") {
				t.Errorf("kubectl %v: %v\n%s", args, err, out)
			}
		}
		for _, manifest := range []string{harness.MarkedJob("team-a", "later", "1"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: any, namespace: team-a}\n"} {
			if out, err := suite.KubectlWith(t.Context(), manifest, "apply", "-f", "-"); err != nil || strings.Contains(out, "Warning") {
				t.Errorf("kubectl apply: %v\n%s", err, out)
			}
		}
		_, err = ask(t, "team-a", "", "QuotaReview", "{}")
		require.ErrorSays(t, err, "quotareviews.visibility.kube-queue.dev")
	})
}
