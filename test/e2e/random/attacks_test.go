package random

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1"
	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/test/e2e/random/oracle"
	"kube-queue.dev/kube-queue/test/e2e/random/plan"
	"kube-queue.dev/kube-queue/test/harness"
)

// planted is how long objects exist that attackers have created or kept with a finalizer.
const planted = 15 * time.Second

// keep is the finalizer of attackers.
const keep = "example.com/keep"

var units = v1alpha1.SchemeGroupVersion.WithResource("queueunits")

// errNothing means that there is nothing to attack, such as a pod of a waiting job.
var errNothing = errors.New("there is no such object")

// attackers are the users of the managed namespaces.
type attackers struct {
	clients map[string]dynamic.Interface
	// plants are the objects that they have created or kept.
	plants []plant
	tally  map[plan.Attack]*outcome
}

type plant struct {
	since    time.Time
	objects  dynamic.ResourceInterface
	name     string
	finalize bool
}

// outcome counts the results of an attack. An accepted attack need not achieve anything.
type outcome struct{ accepted, refused, absent int }

// user returns the name of an attacker.
func user(identity, namespace string) string {
	if identity == plan.Impostor {
		return "system:serviceaccount:" + namespace + ":job-extensions"
	}
	return "random-" + identity
}

// admitAttackers manages all namespaces but the first, and gives the attackers their rights there.
func (r *run) admitAttackers() {
	r.t.Helper()
	r.attackers = attackers{clients: map[string]dynamic.Interface{}, tally: map[plan.Attack]*outcome{}}
	rules := map[string][]string{}
	for _, k := range kinds() {
		rules[k.resource.Group] = append(rules[k.resource.Group], k.resource.Resource)
	}
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: random-jobs}, rules: ["
	for _, group := range slices.Sorted(maps.Keys(rules)) {
		role += fmt.Sprintf("{apiGroups: [%q], resources: [%s], verbs: ['*']}, ", group, strings.Join(rules[group], ", "))
	}
	r.places[0].ApplyAsIs(role + "]}")
	for _, place := range r.places[1:] {
		place.Manage()
		for _, identity := range []string{plan.Editor, plan.Administrator, plan.Impostor} {
			name := user(identity, place.Namespace)
			for _, role := range []string{strings.Replace(identity, plan.Impostor, plan.Editor, 1), "random-jobs"} {
				place.Apply(fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: %s-%s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %q}]}",
					identity, role, role, name))
			}
			r.attackers.clients[name] = place.As(name)
			harness.Eventually(r.t, patience, name+" has its rights", func() (bool, string) {
				object := &unstructured.Unstructured{}
				object.SetUnstructuredContent(map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": "probe"}})
				_, err := place.As(name).Resource(jobSets).Namespace(place.Namespace).Create(r.t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return !strings.Contains(fmt.Sprint(err), "cannot create"), fmt.Sprint(err)
			})
		}
	}
}

// attack makes an attack and counts its result.
func (r *run) attack(d drawn, a plan.Attack) error {
	client := r.attackers.clients[user(a.Identity, r.namespace(d))]
	var err error
	if a.Object == "" {
		err = r.plant(client, d, a)
	} else {
		err = r.tamper(client, d, a)
	}
	count := r.attackers.tally[a]
	if count == nil {
		count = new(outcome)
		r.attackers.tally[a] = count
	}
	switch status := apierrors.APIStatus(nil); {
	case errors.Is(err, errNothing):
		count.absent++
	case err == nil:
		count.accepted++
	case errors.As(err, &status) && status.Status().Code < 500:
		count.refused++
		r.t.Logf("step %d, job %d, %s: refused: %v", r.at, d.Number, a, err)
	default:
		return err
	}
	return nil
}

// tamper changes or deletes an object of the job.
func (r *run) tamper(client dynamic.Interface, d drawn, a plan.Attack) error {
	resource, now, err := r.target(d, a.Object)
	if err != nil {
		return err
	}
	objects, name := client.Resource(resource).Namespace(now.GetNamespace()), now.GetName()
	if a.Verb == plan.Remove {
		how := metav1.DeletePropagationBackground
		if a.Field == plan.WithoutPods {
			how = metav1.DeletePropagationOrphan
		}
		err := objects.Delete(r.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how})
		if err == nil && a.Field == plan.WithoutPods {
			r.clearing[d.Number] = time.Time{}
		}
		if err == nil && resource == harness.RayClusters && d.kind().resource == harness.RayJobs {
			r.clusterless[d.Number] = true
		}
		return err
	}
	changed := now.DeepCopy()
	if err := r.forge(d, a, changed); err != nil {
		return err
	}
	var subresources []string
	if a.Field == plan.Status {
		subresources = []string{"status"}
	}
	switch a.Verb {
	case plan.Update:
		_, err = objects.Update(r.t.Context(), changed, metav1.UpdateOptions{}, subresources...)
	case plan.Apply:
		part := map[string]any{"apiVersion": changed.GetAPIVersion(), "kind": changed.GetKind(), "metadata": map[string]any{"name": name}}
		for _, field := range []string{"ownerReferences", "labels", "finalizers", "annotations"} {
			if value, has, _ := unstructured.NestedFieldNoCopy(changed.Object, "metadata", field); has && a.Field != plan.Spec && a.Field != plan.Status && a.Field != plan.Size && a.Field != plan.Running {
				part["metadata"].(map[string]any)[field] = value
			}
		}
		switch a.Field {
		case plan.Spec, plan.Size, plan.Running:
			part["spec"] = changed.Object["spec"]
		case plan.Status:
			part["status"] = changed.Object["status"]
		}
		_, err = objects.Apply(r.t.Context(), name, &unstructured.Unstructured{Object: part}, metav1.ApplyOptions{FieldManager: "attacker", Force: true}, subresources...)
	default:
		var before, after, patch []byte
		if before, err = now.MarshalJSON(); err != nil {
			return err
		}
		if after, err = changed.MarshalJSON(); err != nil {
			return err
		}
		if patch, err = jsonpatch.CreateMergePatch(before, after); err != nil {
			return err
		}
		options := metav1.PatchOptions{}
		if a.Verb == plan.DryRun {
			options.DryRun = []string{metav1.DryRunAll}
		}
		_, err = objects.Patch(r.t.Context(), name, types.MergePatchType, patch, options, subresources...)
	}
	if err == nil && a.Field == plan.Finalizers && a.Verb != plan.DryRun {
		r.attackers.plants = append(r.attackers.plants, plant{time.Now(), r.dynamic().Resource(resource).Namespace(now.GetNamespace()), name, true})
	}
	return err
}

// target returns an object of the job.
func (r *run) target(d drawn, object string) (schema.GroupVersionResource, *unstructured.Unstructured, error) {
	resource, name := d.kind().resource, d.name()
	switch object {
	case plan.Pod:
		resource, name = harness.Pods, ""
		if pods := r.record.Pods(r.namespace(d), d.name()); len(pods) > 0 {
			name = pods[r.at%len(pods)].Name
		}
	case plan.Unit:
		resource, name = units, ""
		if all := r.record.Units(r.namespace(d), d.name()); len(all) > 0 {
			name = all[r.at%len(all)].Name
		}
	case plan.Part:
		name = ""
		for _, resource = range []schema.GroupVersionResource{harness.RayClusters, harness.Jobs} {
			list, err := r.dynamic().Resource(resource).Namespace(r.namespace(d)).List(r.t.Context(), metav1.ListOptions{})
			if err != nil {
				return resource, nil, err
			}
			for _, part := range list.Items {
				if owner := metav1.GetControllerOf(&part); owner != nil && owner.Name == d.name() && owner.Kind == d.Kind {
					return resource, &part, nil
				}
			}
		}
	}
	if name == "" {
		return resource, nil, errNothing
	}
	found, err := r.dynamic().Resource(resource).Namespace(r.namespace(d)).Get(r.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return resource, nil, errNothing
	}
	return resource, found, err
}

// nobody is an owner that does not exist: objects without another owner are garbage.
var nobody = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-4000-8000-000000000000", "controller": true}

// forge changes the object as the attack wants. It keeps the label by which the oracle knows a pod's job.
func (r *run) forge(d drawn, a plan.Attack, o *unstructured.Unstructured) error {
	switch a.Field {
	case plan.NoOwner:
		unstructured.RemoveNestedField(o.Object, "metadata", "ownerReferences")
	case plan.OtherOwner:
		return unstructured.SetNestedSlice(o.Object, []any{maps.Clone(nobody)}, "metadata", "ownerReferences")
	case plan.Labels:
		labels := o.GetLabels()
		for key := range labels {
			if key != oracle.JobLabel && a.Verb == plan.Apply {
				labels[key] = "other"
			} else if key != oracle.JobLabel {
				delete(labels, key)
			}
		}
		o.SetLabels(labels)
	case plan.Finalizers:
		finalizer := keep
		if a.Object == plan.Part || a.Object == plan.Self {
			finalizer = "orphan"
		}
		o.SetFinalizers([]string{finalizer})
	case plan.Annotations:
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, map[string]string{"scheduling.x-k8s.io/suspend": "false", "kube-queue/released": "7", "kube-queue/managed": "false", "kube-queue/not-part-of": "x",
			"kube-queue/admitted-count": "main=1", "kube-queue/original-count": "main=1", "kube-queue/after": "x"})
		o.SetAnnotations(annotations)
	case plan.Gate:
		_, gated, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "schedulingGates")
		if !gated || a.Verb == plan.Apply { // an apply removes nothing that others have set
			return errNothing
		}
		unstructured.RemoveNestedField(o.Object, "spec", "schedulingGates")
	case plan.Group:
		if err := unstructured.SetNestedField(o.Object, "other", "metadata", "labels", wellknown.PodGroupLabel); err != nil {
			return err
		}
		return unstructured.SetNestedField(o.Object, "1", "metadata", "annotations", wellknown.PodGroupSizeAnnotation)
	case plan.Spec:
		return unstructured.SetNestedStringMap(o.Object, map[string]string{"cpu": "1m"}, "spec", "resource")
	case plan.Status:
		return unstructured.SetNestedField(o.Object, "Succeeded", "status", "phase")
	case plan.Running:
		path := []string{"spec", "suspend"}
		if a.Object == plan.Self {
			path = d.kind().suspend
		}
		return unstructured.SetNestedField(o.Object, false, path...)
	case plan.Size:
		pointer := d.kind().workers
		if pointer == "" {
			return errNothing
		}
		return r.resize(o, pointer)
	}
	return nil
}

// resize sets the number of workers to one that a waiting job may have.
func (r *run) resize(o *unstructured.Unstructured, pointer string) error {
	before, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(fmt.Appendf(nil, `[{"op": "replace", "path": %q, "value": %d}]`, pointer, plan.MaxWorkers))
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return err
	}
	return o.UnmarshalJSON(after)
}

// plant creates an object that names the job.
func (r *run) plant(client dynamic.Interface, d drawn, a plan.Attack) error {
	_, self, err := r.target(d, plan.Self)
	if err != nil {
		return err
	}
	labels := map[string]string{oracle.JobLabel: d.name()}
	if pods := r.record.Pods(r.namespace(d), d.name()); a.Field == plan.ALabelledPod && len(pods) > 0 {
		labels = pods[0].Labels
	} else if a.Field == plan.ALabelledPod {
		return errNothing
	}
	mine, err := json.Marshal(labels)
	if err != nil {
		return err
	}
	pod := fmt.Sprintf("metadata: {labels: %s, annotations: {%s: %q}%%s}, spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 100m, memory: 16Mi}}}]}",
		mine, harness.RunTime, harness.UntilFinished)
	name := fmt.Sprintf("name: %s-x%d", d.name(), r.at)
	if a.Verb == plan.Generate {
		name = fmt.Sprintf("generateName: %s-x%d-", d.name(), r.at)
	}
	owned := fmt.Sprintf(", ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", self.GetAPIVersion(), self.GetKind(), self.GetName(), self.GetUID())
	template := fmt.Sprintf(pod, "")
	job := func(metadata string) string {
		return fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {%s%s}, spec: {backoffLimit: 0, template: {%s}}}", name, metadata, template)
	}
	unit := func(ref, spec string) string {
		return fmt.Sprintf("{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit, metadata: {%s}, spec: {consumerRef: {%s}, resource: {cpu: 100m}%s}}", name, ref, spec)
	}
	resource, text := harness.Jobs, ""
	switch a.Field {
	case plan.APod, plan.ADaemon, plan.ALabelledPod, plan.APlacedPod, plan.AGrownPod:
		resource = harness.Pods
		owner := map[string]string{plan.APod: owned, plan.AGrownPod: owned, plan.ADaemon: ", ownerReferences: [{apiVersion: example.com/v1, kind: DaemonSet, name: d, uid: d, controller: true}]"}[a.Field]
		text = "{apiVersion: v1, kind: Pod, " + fmt.Sprintf(pod, ", "+name+owner) + "}"
		switch a.Field {
		case plan.APlacedPod:
			text = strings.Replace(text, "spec: {", "spec: {nodeName: anywhere, ", 1)
		case plan.AGrownPod:
			text = strings.Replace(text, "annotations: {", "annotations: {"+wellknown.GrowthAnnotation+": main, ", 1)
		}
	case plan.AReplicaSet:
		resource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
		text = fmt.Sprintf("{apiVersion: apps/v1, kind: ReplicaSet, metadata: {%s%s}, spec: {replicas: 1, selector: {matchLabels: {random: x%d}}, template: {%s}}}", name, owned, r.at,
			strings.Replace(strings.Replace(template, "labels: {", fmt.Sprintf("labels: {random: x%d, ", r.at), 1), "restartPolicy: Never", "restartPolicy: Always", 1))
	case plan.AJob:
		text = job(owned)
	case plan.AMarkedJob:
		text = job(owned + `, annotations: {scheduling.x-k8s.io/suspend: "true"}`)
	case plan.ACopy:
		text = job(`, annotations: {scheduling.x-k8s.io/suspend: "false", kube-queue/released: "1"}`)
	case plan.ABypass:
		text = job(`, annotations: {kube-queue/bypass: "true"}`)
	case plan.AnotherQueue:
		text = job(", labels: {kueue.x-k8s.io/queue-name: x}")
	case plan.ItsUnit:
		resource, text = units, unit(fmt.Sprintf("apiVersion: %s, kind: %s, name: %s", self.GetAPIVersion(), self.GetKind(), self.GetName()), "")
	case plan.AnOldUnit:
		resource, text = units, unit(fmt.Sprintf("apiVersion: example.com/v1, kind: Thing, name: %s-x%d", d.name(), r.at), `, submissionTime: "1970-01-01T00:00:00.000000Z"`)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	made, err := client.Resource(resource).Namespace(r.namespace(d)).Create(r.t.Context(), object, metav1.CreateOptions{})
	if err == nil {
		r.attackers.plants = append(r.attackers.plants, plant{time.Now(), r.dynamic().Resource(resource).Namespace(r.namespace(d)), made.GetName(), false})
	}
	return err
}

// weed removes what attackers have planted, after some time.
func (r *run) weed() {
	r.t.Helper()
	r.attackers.plants = slices.DeleteFunc(r.attackers.plants, func(p plant) bool {
		if time.Since(p.since) < planted {
			return false
		}
		if !p.finalize {
			background := metav1.DeletePropagationBackground
			err := p.objects.Delete(r.t.Context(), p.name, metav1.DeleteOptions{PropagationPolicy: &background})
			return err == nil || apierrors.IsNotFound(err)
		}
		object, err := p.objects.Get(r.t.Context(), p.name, metav1.GetOptions{})
		if err == nil {
			object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(f string) bool { return f == keep }))
			_, err = p.objects.Update(r.t.Context(), object, metav1.UpdateOptions{})
		}
		return err == nil || apierrors.IsNotFound(err)
	})
}

// reportAttacks logs the results of the attacks.
func (r *run) reportAttacks() {
	r.t.Helper()
	var rows []string
	total, made := outcome{}, 0
	for a, count := range r.attackers.tally {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %d | %d | %d | %d |", a.Identity, a.Verb, a.Object, a.Field,
			count.accepted+count.refused, count.refused, count.accepted, count.absent))
		total.accepted, total.refused, total.absent = total.accepted+count.accepted, total.refused+count.refused, total.absent+count.absent
	}
	if made = total.accepted + total.refused; made+total.absent == 0 {
		return
	}
	slices.Sort(rows)
	r.t.Logf("%d attacks, of which %d were refused and %d accepted; for %d others there was no object:\n"+
		"| identity | verb | object | field | made | refused | accepted | no object |\n|---|---|---|---|---|---|---|---|\n%s",
		made, total.refused, total.accepted, total.absent, strings.Join(rows, "\n"))
	if total.refused == 0 || total.accepted == 0 {
		r.t.Error("no attack was refused, or none was accepted: the attacks prove little")
	}
}
