package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kube-queue.dev/kube-queue/apis/scheduling/v1alpha1/wellknown"
	"kube-queue.dev/kube-queue/extensions/framework"
	"kube-queue.dev/kube-queue/pkg/spelling"
)

// place is where a key counts.
type place string

const (
	annotation place = "annotation"
	label      place = "label"
	// anywhere is the place of keys that count in both places, and of keys that users do not set.
	anywhere place = "label or annotation"
)

// keys are all keys with the prefixes of kube-queue that a job can have. Keys that users set are suggested for
// misspelled ones.
var keys = map[string]struct {
	place place
	set   bool // by users
}{
	wellknown.SuspendAnnotation:         {annotation, true},
	wellknown.PriorityAnnotation:        {annotation, true},
	wellknown.PriorityClassKey:          {anywhere, true},
	wellknown.ActiveAnnotation:          {annotation, true},
	wellknown.MaxExecTimeAnnotation:     {annotation, true},
	wellknown.ExpectedRunTimeAnnotation: {annotation, true},
	wellknown.PreemptibleLabel:          {label, true},
	wellknown.QuotaNameLabel:            {label, true},
	wellknown.MinCountAnnotation:        {annotation, true},
	wellknown.MinResourcesAnnotation:    {annotation, true},
	wellknown.BypassAnnotation:          {annotation, true},
	wellknown.PodGroupLabel:             {label, false},
	wellknown.PodGroupSizeAnnotation:    {annotation, false},
	wellknown.GatedLabel:                {anywhere, false},
	wellknown.ManagedKey:                {anywhere, false}, // on a namespace it is a label, which a template can copy
	wellknown.NotPartOfAnnotation:       {anywhere, false},
	wellknown.ReleasedAnnotation:        {anywhere, false},
	wellknown.ResumedAnnotation:         {anywhere, false},
	wellknown.PodAnnotationsAnnotation:  {anywhere, false},
	wellknown.GrowthAnnotation:          {anywhere, false},
	wellknown.OriginalCountAnnotation:   {anywhere, false},
	wellknown.AdmittedCountAnnotation:   {anywhere, false},
	wellknown.ShutdownAnnotation:        {anywhere, false},
	wellknown.KindLabel:                 {anywhere, false},
	wellknown.AfterAnnotation:           {anywhere, false},
}

// suggested are the keys that users set, in order.
var suggested = func() (all []string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if keys[key].set {
			all = append(all, key)
		}
	}
	return all
}()

// former are the keys of ack-kube-queue and koord-queue that have another name here.
var former = map[string]string{
	"quota.scheduling.alibabacloud.com/name":        wellknown.QuotaNameLabel,
	"quota.scheduling.koordinator.sh/name":          wellknown.QuotaNameLabel,
	"alibabacloud.com/quota-name":                   wellknown.QuotaNameLabel,
	"quota.scheduling.alibabacloud.com/preemptible": wellknown.PreemptibleLabel,
	"quota.scheduling.koordinator.sh/preemptible":   wellknown.PreemptibleLabel,
	"koord-queue/min-resources":                     wellknown.MinResourcesAnnotation,
}

// prefixes of the keys of users, without the slash.
var prefixes = []string{strings.TrimSuffix(wellknown.SchedulingPrefix, "/"), strings.TrimSuffix(wellknown.Prefix, "/")}

// ignoredKey is a label or annotation that has no effect and was probably meant to have one.
type ignoredKey struct {
	key   string
	place place
	// meant is the key that was meant.
	meant string
}

func (i ignoredKey) String() string {
	if former[i.key] != "" {
		return fmt.Sprintf("%s %s has no effect on kube-queue; set %s %s instead", i.place, i.key, keys[i.meant].place, i.meant)
	}
	if i.key == i.meant {
		return fmt.Sprintf("%s %s has no effect; set it as %s instead", i.place, i.key, keys[i.meant].place.withArticle())
	}
	return fmt.Sprintf("%s %s has no effect; did you mean %s %s?", i.place, i.key, keys[i.meant].place, i.meant)
}

func (p place) withArticle() string {
	if p == annotation {
		return "an annotation"
	}
	return "a label"
}

// IgnoredKeys describes the labels and annotations of the job that have no effect and were probably meant to have
// one, an expected run time that is invalid, and the size of a group without a group; empty if there are none. It names at most three.
func IgnoredKeys(job framework.Object) string {
	const most = 3
	var texts []string
	if _, err := readSeconds(wellknown.ExpectedRunTimeAnnotation, job.GetAnnotations()); err != nil {
		texts = append(texts, err.Error())
	}
	if _, sized := job.GetAnnotations()[wellknown.PodGroupSizeAnnotation]; sized && job.GetLabels()[wellknown.PodGroupLabel] == "" {
		texts = append(texts, fmt.Sprintf("%s %s has no effect without %s %s", annotation, wellknown.PodGroupSizeAnnotation, label, wellknown.PodGroupLabel))
	}
	for _, found := range ignoredKeys(job) {
		if len(texts) == most {
			break
		}
		texts = append(texts, found.String())
	}
	return strings.Join(texts, "; ")
}

// AlmostMarked describes a label or annotation that was probably meant to mark the job; empty if there is none, or if
// the job has the annotation that marks jobs.
func AlmostMarked(job framework.Object) string {
	if _, there := job.GetAnnotations()[wellknown.SuspendAnnotation]; there {
		return ""
	}
	for _, found := range ignoredKeys(job) {
		if found.meant == wellknown.SuspendAnnotation {
			return found.String()
		}
	}
	return ""
}

// mostCompared is the largest number of labels, or of annotations, that are compared with known keys. Those of a job that
// somebody fills with them would take half a second at each change, and the jobs of others would wait.
const mostCompared = 100

// ignoredKeys returns the ignored keys of the job, the annotations first.
func ignoredKeys(job framework.Object) (found []ignoredKey) {
	for _, of := range []struct {
		place place
		all   map[string]string
	}{{annotation, job.GetAnnotations()}, {label, job.GetLabels()}} {
		if len(of.all) > mostCompared {
			continue
		}
		first := len(found)
		for key := range of.all {
			meant := meantKey(key, of.place)
			if _, set := job.GetLabels()[meant]; set && former[key] != "" { // for Koordinator
				continue
			}
			if meant != "" {
				found = append(found, ignoredKey{key, of.place, meant})
			}
		}
		slices.SortFunc(found[first:], func(a, b ignoredKey) int { return strings.Compare(a.key, b.key) })
	}
	return found
}

// meantKey returns the key that a user probably meant by a key that has no effect here; empty if the key has an effect
// or resembles no other.
func meantKey(key string, at place) string {
	if now := former[key]; now != "" {
		return now
	}
	prefix, name, qualified := strings.Cut(key, "/")
	if !qualified {
		return ""
	}
	if known, there := keys[key]; there {
		if known.place == anywhere || known.place == at {
			return ""
		}
		return key
	}
	ours := slices.Contains(prefixes, prefix)
	for _, other := range suggested { // the name is right, but not the prefix
		otherPrefix, otherName, _ := strings.Cut(other, "/")
		if name == otherName && (ours || spelling.Nearest(prefix, []string{otherPrefix}) != "") {
			return other
		}
	}
	if !ours {
		return ""
	}
	for _, same := range []bool{true, false} { // a key with the same prefix first
		for _, other := range suggested {
			otherPrefix, otherName, _ := strings.Cut(other, "/")
			short := same && len(name) > 3 && strings.HasPrefix(otherName, strings.ToLower(name))
			if (prefix == otherPrefix) == same && (short || spelling.Nearest(name, []string{otherName}) != "") {
				return other
			}
		}
	}
	return ""
}
