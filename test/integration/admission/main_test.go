// Package admission tests kube-queue's manifests in the API server: CRDs, roles and admission
// policies. The programs do not run.
package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kube-queue.dev/kube-queue/pkg/clientset"
	"kube-queue.dev/kube-queue/test/clustertest"
	"kube-queue.dev/kube-queue/test/harness"
)

var (
	cluster *clustertest.Cluster
	// operators define the kinds of job. None of them runs.
	operators []clustertest.Operator
)

func TestMain(m *testing.M) {
	var err error
	if operators, err = clustertest.Operators(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	clustertest.Main(m, options(), func(c *clustertest.Cluster) { cluster = c })
}

func options() clustertest.Options {
	together, _ := clustertest.SideBySide(operators)
	return clustertest.Options{Nodes: 1, CRDs: clustertest.Names(together)}
}

// patience is the timeout of waits. It is multiplied on slow machines.
const patience = 30 * time.Second

func core(t testing.TB) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config())
	must(t, err)
	return client
}

func objects(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(cluster.Config())
	must(t, err)
	return client
}

// unitsAs returns a client for the units of a namespace with the rights of a config.
func unitsAs(t *testing.T, config *rest.Config, ns string) clientset.QueueUnits {
	t.Helper()
	client, err := clientset.NewForConfig(config)
	must(t, err)
	return client.SchedulingV1alpha1().QueueUnits(ns)
}

// namespace creates a namespace for one test. It stays, because deleting it with its contents takes longer than most
// tests.
func namespace(t testing.TB) string {
	t.Helper()
	created, err := core(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "admission-"},
	}, metav1.CreateOptions{})
	must(t, err)
	return created.Name
}

// eventually waits until check returns nil.
func eventually(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	harness.Eventually(t, patience, what, func() (bool, string) {
		err := check(t.Context())
		return err == nil, fmt.Sprint(err)
	})
}

// person is a user with only this ClusterRole in a namespace.
func person(t *testing.T, ns, role string) *rest.Config {
	t.Helper()
	return userWith(t, ns, role, "person-with-"+role)
}

// userWith binds a ClusterRole to a user in a namespace and returns the user's config.
func userWith(t *testing.T, ns, role, user string) *rest.Config {
	t.Helper()
	grant(t, ns, "ClusterRole", role, user)
	return cluster.ConfigAs(user)
}

// grant binds a role to a user in a namespace, and waits until this is in effect. The user can have the rights of the role
// already, so the role is also bound to a witness, who has no others.
func grant(t *testing.T, ns, roleKind, role, user string) {
	t.Helper()
	roles, witness := core(t).RbacV1(), role+" of "+user
	var rules []rbacv1.PolicyRule
	if roleKind == "Role" {
		found, err := roles.Roles(ns).Get(t.Context(), role, metav1.GetOptions{})
		must(t, err)
		rules = found.Rules
	} else {
		found, err := roles.ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
		must(t, err)
		rules = found.Rules
	}
	_, err := roles.RoleBindings(ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "grant-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: roleKind, Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}, {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: witness}},
	}, metav1.CreateOptions{})
	must(t, err)
	awaitRight(t, witness, ns, rules[0])
}

// awaitRight waits until a user may do the first thing that a rule permits.
func awaitRight(t *testing.T, user, ns string, rule rbacv1.PolicyRule) {
	t.Helper()
	resource := rule.APIGroups[0] + "/" + rule.Resources[0]
	if len(rule.ResourceNames) > 0 {
		resource += "=" + rule.ResourceNames[0]
	}
	eventually(t, user+" may "+rule.Verbs[0]+" "+resource, func(ctx context.Context) error {
		if !may(ctx, t, user, ns, rule.Verbs[0], resource) {
			return errors.New("not yet")
		}
		return nil
	})
}

func program(t *testing.T, name string) *rest.Config {
	t.Helper()
	config, _, err := cluster.ServiceAccountConfig(t.Context(), name)
	must(t, err)
	return config
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that an error contains a text, or that there is no error.
func wantError(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Fatalf("refused: %v", err)
	case says != "" && err == nil:
		t.Fatalf("not refused; want %q", says)
	case says != "" && !strings.Contains(err.Error(), says):
		t.Fatalf("refused with %q, want %q", err, says)
	}
}

func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := cluster.KubectlWith(t.Context(), stdin, args...)
	must(t, err)
	return out
}
