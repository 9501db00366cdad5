package admission

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// By changing the owners of a unit that holds quota, a user could have it deleted. With its finalizers, it would
// stay, or be gone too soon. Users who may delete a unit that was created by hand may change these fields.
func TestWhoMayChangeTheMetadataOfAUnit(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	const collector, root = "system:serviceaccount:kube-system:generic-garbage-collector", "system:kube-controller-manager"
	for _, user := range []string{"tenant", collector, root, "system:serviceaccount:kube-system:job-controller", "system:serviceaccount:kube-system:default",
		"system:serviceaccount:" + ns + ":generic-garbage-collector"} {
		who[user] = userWith(t, ns, "kube-queue-editor", user)
	}
	var owners []string
	for _, name := range []string{"a", "b"} {
		owner, err := core(t).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		owners = append(owners, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}", name, owner.UID))
	}
	both := strings.Join(owners, ", ")
	for name, kind := range map[string]string{"of-a-job": "Job", "by-hand": "Thing"} {
		u := unit(name, "batch/v1", kind)
		must(t, yaml.Unmarshal([]byte("["+both+"]"), &u.OwnerReferences))
		u.Finalizers = []string{"foregroundDeletion", "example.com/a"}
		makeUnit(t, who, ns, u)
		prepare(t, who, ns, name)
	}
	// Who, besides job-extensions, may make a change.
	const (
		nobody    = 0
		gc        = 1
		ofHand    = 2 // all users, for a unit that was created by hand
		everybody = 4
	)
	const keepsOwners, keepsFinalizers = "only job-extensions changes the owners of the QueueUnit of a Job", "only job-extensions adds finalizers to the QueueUnit of a Job"
	changes := []struct {
		name, patch string
		may         int
		says        string
	}{
		{"no owners", `{metadata: {ownerReferences: null}}`, gc | ofHand, keepsOwners},
		{"one owner less", `{metadata: {ownerReferences: [` + owners[1] + `]}}`, gc | ofHand, keepsOwners},
		{"an owner that does not exist", `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}}`, ofHand, keepsOwners},
		{"another owner too", `{metadata: {ownerReferences: [` + both + `, {apiVersion: v1, kind: ConfigMap, name: c, uid: c}]}}`, ofHand, keepsOwners},
		{"a finalizer more", `{metadata: {finalizers: [foregroundDeletion, example.com/a, example.com/b]}}`, ofHand, keepsFinalizers},
		{"another finalizer", `{metadata: {finalizers: [foregroundDeletion, example.com/b]}}`, ofHand, keepsFinalizers},
		{"no finalizer of the garbage collector", `{metadata: {finalizers: [example.com/a]}}`, gc | ofHand, keepsFinalizers},
		{"no finalizer of others", `{metadata: {finalizers: [foregroundDeletion]}}`, everybody, keepsFinalizers},
		{"no finalizers", `{metadata: {finalizers: null}}`, gc | ofHand, keepsFinalizers},
		{"the annotation of a restored unit", `{metadata: {annotations: {kube-queue/released: "1"}}}`, nobody, "annotation kube-queue/released"},
		{"an annotation", `{metadata: {annotations: {a: b}}}`, everybody, ""},
		{"a label", `{metadata: {labels: {a: b}}}`, everybody, ""},
	}
	for user, config := range who {
		if user == "controller" {
			continue // its role does not allow changing units
		}
		units := unitsAs(t, config, ns)
		for _, name := range []string{"of-a-job", "by-hand"} {
			for _, change := range changes {
				says := change.says
				switch {
				case user == "job-extensions", change.may&everybody != 0, change.may&gc != 0 && (user == collector || user == root),
					change.may&ofHand != 0 && name == "by-hand":
					says = ""
				}
				t.Run(fmt.Sprint(user, " gives the unit ", name, " ", change.name), func(t *testing.T) {
					_, err := units.Patch(t.Context(), name, types.MergePatchType, toJSON(t, change.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
					wantError(t, err, says)
					full := strings.Replace(change.patch, "{metadata: {", "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {name: "+name+", ", 1)
					if !strings.Contains(change.patch, "null") { // an apply does not remove fields of other managers
						_, err := units.Patch(t.Context(), name, types.ApplyPatchType, toJSON(t, full), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "test", Force: ptr.To(true)})
						if says == "" {
							wantError(t, err, "")
						}
					}
				})
			}
		}
	}
	// An administrator may also replace a unit.
	for name, says := range map[string]string{"of-a-job": keepsOwners, "by-hand": ""} {
		u, err := unitsAs(t, who["administrator"], ns).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		u.OwnerReferences = nil
		_, err = unitsAs(t, who["administrator"], ns).Update(t.Context(), u, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		wantError(t, err, says)
	}
	restored := unit("restored", "example.com/v1", "Thing")
	restored.Annotations = map[string]string{"kube-queue/released": "1"}
	_, err := unitsAs(t, who["tenant"], ns).Create(t.Context(), restored, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	wantError(t, err, "annotation kube-queue/released")
}

// For some deletions, the API server adds finalizers, which the garbage collector removes.
func TestAUnitIsGoneHoweverItIsDeleted(t *testing.T) {
	ns := namespace(t)
	who := actors(t, ns)
	tenant := unitsAs(t, userWith(t, ns, "kube-queue-editor", "tenant"), ns)
	for _, kind := range []string{"Job", "Thing"} {
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
			name := strings.ToLower(kind + "-" + string(policy))
			makeUnit(t, who, ns, unit(name, "batch/v1", kind))
			must(t, tenant.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
			eventually(t, name+" is gone", func(ctx context.Context) error {
				if _, err := tenant.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("it is there (error %v)", err)
				}
				return nil
			})
		}
	}
	makeUnit(t, who, ns, unit("held", "batch/v1", "Job"))
	prepare(t, who, ns, "held")
	must(t, core(t).CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}))
	eventually(t, "a unit that holds quota is gone with its namespace", func(ctx context.Context) error {
		if _, err := unitsAs(t, cluster.Config(), ns).Get(ctx, "held", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there (error %v)", err)
		}
		return nil
	})
}
