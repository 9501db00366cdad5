package reconciler

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/extensions/framework/decision"
)

// release clears mark and suspend field in one patch. The patch also gives the pods the annotations of the unit's
// admission checks, and the job the number of pods that the unit was admitted with.
func (r *reconciler) release(ctx context.Context, o *observation) (bool, error) {
	added, unnamed := decision.PodAnnotationsOf(o.unit)
	recorded := decision.RecordedOf(o.job)
	if r.pods != nil {
		added.GateGrowth(r.adapter, o.job, o.unit, recorded)
	}
	resized, err := decision.Resized(r.adapter, o.job, o.unit)
	if err != nil {
		return false, err
	}
	o.resized = resized
	unplaced, done, err := r.releaseWith(ctx, o, added, recorded)
	o.unplaced = unplaced.And(unnamed)
	return done, err
}

// releaseWith releases the job, adds annotations to its pods and removes recorded ones. It returns why pod sets do not
// get theirs. done is false if the job has changed. If the API server rejects the annotations, the job is released
// without them, because its owner cannot fix that.
func (r *reconciler) releaseWith(ctx context.Context, o *observation, added, recorded decision.PodAnnotations) (unplaced decision.Unplaced, done bool, err error) {
	if len(added) == 0 && len(recorded) == 0 {
		done, err = r.releaseAlone(ctx, o)
		return nil, done, err
	}
	unplaced, done, err = r.releaseAnnotated(ctx, o, added, recorded)
	if !refused(err) {
		return unplaced, done, err
	}
	// The API server also rejects a patch of lists that have changed. The next step is decided on the new job.
	if overtaken, failed := r.isOvertaken(ctx, o); overtaken || failed != nil {
		return nil, false, failed
	}
	cause := shortened(err)
	done, err = r.releaseAlone(ctx, o)
	return unplaced.And(added.Why(fmt.Sprintf("the API server refuses them: %s", cause))).
		And(recorded.Why(fmt.Sprintf("the API server refuses to remove those of the last release: %s", cause))), done, err
}

// shortened returns the beginning of an error of the API server, which can contain a whole template.
func shortened(err error) string {
	text, most := err.Error(), 300
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// refused reports whether the API server rejects a patch because of its content.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

func (r *reconciler) releaseAlone(ctx context.Context, o *observation) (bool, error) {
	data, err := releasePatch(r.adapter, r.described, o.job, decision.Attempt(o.unit), o.resized)
	if err != nil {
		return false, err
	}
	err = r.mergeJob(ctx, o, data)
	return err == nil, err
}

// releaseAnnotated reads the job from the API server and sends a JSON Patch. Some kinds have their pods in a list: a
// merge patch would replace the whole list, and the list in the cached job is incomplete.
func (r *reconciler) releaseAnnotated(ctx context.Context, o *observation, added, recorded decision.PodAnnotations) (decision.Unplaced, bool, error) {
	data, err := r.jobs.GetJSON(ctx, o.key.Namespace, o.key.Name)
	if err != nil {
		return nil, false, fmt.Errorf("reading %s %s: %w", r.kind.Kind, o.key, err)
	}
	live, err := decodeObject(data)
	if err != nil {
		return nil, false, fmt.Errorf("decoding %s %s: %w", r.kind.Kind, o.key, err)
	}
	if r.overtaken(o, &unstructured.Unstructured{Object: live}) {
		return nil, false, nil
	}
	patch, unplaced, err := annotatedPatch(r.adapter, r.described, o.job, live, decision.Attempt(o.unit), added, recorded, o.resized, o.now)
	if err != nil {
		return nil, false, err
	}
	err = r.patchJob(ctx, o, types.JSONPatchType, patch)
	return unplaced, err == nil, err
}

// annotatedPatch returns the JSON Patch that changes the live job like releasePatch, and also changes the annotations
// of its pods.
func annotatedPatch(adapter framework.Adapter, kind framework.Kind, job framework.Object, live map[string]any, attempt string,
	added, recorded decision.PodAnnotations, resized map[string]any, at time.Time) ([]byte, decision.Unplaced, error) {
	now := runtime.DeepCopyJSON(live)
	placed, unplaced := decision.Annotate(adapter.Kind(), now, added, recorded)
	decision.SetTime(adapter.Kind(), now, at)
	data, err := releasePatch(adapter, kind, job, attempt, decision.Join(record(placed, recorded), resized))
	if err != nil {
		return nil, nil, err
	}
	merge, err := decodeObject(data)
	if err != nil {
		return nil, nil, err
	}
	decision.Merge(now, merge)
	patch, err := json.Marshal(append(guardOperations(job), decision.OperationsOf(live, now)...))
	return patch, unplaced, err
}

// record returns the part of a merge patch that records the annotations of pods.
func record(placed, before decision.PodAnnotations) map[string]any {
	var value any
	switch {
	case len(placed) > 0:
		value = placed.Record()
	case len(before) == 0:
		return nil
	}
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{wellknown.PodAnnotationsAnnotation: value}}}
}

// decodeObject decodes a JSON object. Numbers keep their text.
func decodeObject(data []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	return object, nil
}
