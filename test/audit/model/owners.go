package model

// applyOwners applies a write of a pod that returned only its metadata.
func (w *World) applyOwners(write *Write, facts *ownerFacts) {
	if p := w.Pods[write.UID]; p != nil {
		p.ownerFacts = *facts
		w.followPod(p, false)
	}
}

func (w *World) jobOfPod(p *Pod, facts *podFacts) *Job {
	if facts.byRow != nil {
		return w.named[jobKey{facts.byRow, p.Namespace, facts.labelled}]
	}
	return w.root(facts.owner.UID)
}

// OwnerOf returns the UID of the object that a pod belongs to, from the pod in the create request.
func (w *World) OwnerOf(facts *podFacts, namespace string) string {
	if facts.byRow != nil {
		if j := w.named[jobKey{facts.byRow, namespace, facts.labelled}]; j != nil {
			return j.UID
		}
	}
	return facts.owner.UID
}

// maxOwners bounds the number of objects that an object belongs to, because owner references may form
// cycles.
const maxOwners = 16

// above returns the UID of the controller of an object. A pod without a controller belongs to the job
// that its label names.
func (w *World) above(uid string) string {
	owner := w.owners[uid]
	if p := w.Pods[uid]; owner == "" && p != nil && p.job != nil {
		return p.job.UID
	}
	return owner
}

// root returns the topmost job among an object and its controllers.
func (w *World) root(uid string) *Job {
	var top *Job
	for steps := 0; uid != "" && steps < maxOwners; steps++ {
		if j := w.Jobs[uid]; j != nil {
			top = j
		} else if p := w.Pods[uid]; p != nil && p.job != nil {
			return p.job
		}
		uid = w.owners[uid]
	}
	return top
}

// RootOf returns the topmost job that the job belongs to; nil if it belongs to none.
func (w *World) RootOf(j *Job) *Job {
	if j == nil || w.owners[j.UID] == "" {
		return nil
	}
	return w.root(w.owners[j.UID])
}
