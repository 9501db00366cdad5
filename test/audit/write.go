package audit

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kube-queue.dev/kube-queue/test/audit/log"
)

// User names of the two programs.
const (
	Controller = "system:serviceaccount:kube-queue:kube-queue-controller"
	Extensions = "system:serviceaccount:kube-queue:job-extensions"
)

// write is a log entry of a request to change an object, successful or not.
type write struct {
	Moment             // Time is that of the response
	received time.Time // the request

	user, verb                            string
	group, version, resource, subresource string
	namespace, name, uid                  string
	// code is the HTTP status of the response.
	code int

	// instance distinguishes processes with the same user by their credentials. It is empty if the
	// log does not contain them.
	instance string
	// own reports that the write itself returned the revision.
	own bool
	// gone reports that the object does not exist after the write.
	gone bool
	// forced reports that the write ended the grace period of an object that had finalizers, and may still have them.
	forced bool
	// body has the facts of the object; see decoders. It is nil for other kinds, or if the response
	// contains no object.
	body any
}

// ok reports whether the write was stored, as far as the log shows.
func (w *write) ok() bool { return log.Success(w.code) }

// lost reports whether the write may have been stored although it has no response or an error. The API server logs
// status 504 if a program is killed during its write.
func (w *write) lost() bool { return w.code == 0 || w.code >= 500 }

// creates reports whether the write created its object.
func (w *write) creates() bool {
	return w.ok() && w.subresource == "" && (w.verb == "create" || w.code == 201 && (w.verb == "patch" || w.verb == "update"))
}

// byProgram reports whether the write was made by one of the two programs.
func (w *write) byProgram() bool { return w.user == Controller || w.user == Extensions }

// objectName identifies an object at one time: a later object may reuse the name.
type objectName struct{ group, resource, namespace, name string }

func (w *write) object() objectName { return objectName{w.group, w.resource, w.namespace, w.name} }

// decoder reads the facts of an object of a kind.
type decoder struct {
	kind string
	read func(*metav1.ObjectMeta, json.RawMessage) (any, error)
}

// decoders has the decoders by group and resource, except those of jobs.
var decoders = map[string]decoder{
	"/pods":                          {"Pod", readPod},
	"/resourcequotas":                {"ResourceQuota", readResourceQuota},
	"/namespaces":                    {"Namespace", readNamespace},
	"/events":                        {"Event", readEvent},
	"events.k8s.io/events":           {"Event", readEvent},
	"coordination.k8s.io/leases":     {"Lease", readLease},
	"scheduling.x-k8s.io/queueunits": {"QueueUnit", readUnit},
	"scheduling.sigs.k8s.io/elasticquotatrees": {"ElasticQuotaTree", readTree},
}

func (w *write) decoder() (decoder, bool) {
	if k := kindOf(w.group, w.version, w.resource); k != nil {
		return decoder{k.Kind, k.read}, true
	}
	d, ok := decoders[w.group+"/"+w.resource]
	return d, ok
}

// credentialKey is the key under which the API server logs the ID of a request's token.
const credentialKey = "authentication.kubernetes.io/credential-id"

// decoded is the result of one line.
type decoded struct {
	writes []*write
	at     time.Time
	write  bool // the line is a write, kept or not
	bare   bool // the object is missing because the level is too low
	cut    bool // the objects were omitted because of their size
	err    error
}

// noise has groups whose objects are not stored, such as reviews.
var noise = []string{"authentication.k8s.io", "authorization.k8s.io"}

func decodeLine(number int, line []byte) decoded {
	e, err := log.Parse(line)
	if err != nil {
		return decoded{err: err}
	}
	out := decoded{at: e.StageTimestamp}
	if !e.Write() || slices.Contains(noise, e.ObjectRef.APIGroup) || e.DryRun() {
		return out
	}
	out.write, out.cut = true, e.Truncated()
	w := writeOf(number, e)
	d, known := w.decoder()
	if !known && !strings.HasPrefix(w.user, "system:serviceaccount:") {
		return out
	}
	out.writes = []*write{w}
	switch {
	case !known || !w.ok():
	case len(e.ResponseObject) == 0:
		out.bare = !out.cut
	case w.verb == "deletecollection":
		out.writes, out.err = w.collection(e)
	default:
		out.err = w.answer(d, e.ResponseObject)
	}
	return out
}

func writeOf(number int, e *log.Entry) *write {
	ref := e.ObjectRef
	w := &write{
		Moment: Moment{Time: e.StageTimestamp, Line: number}, received: e.RequestReceivedTimestamp,
		user: e.By(), verb: e.Verb, code: e.Code(),
		group: ref.APIGroup, version: ref.APIVersion, resource: ref.Resource, subresource: ref.Subresource,
		namespace: ref.Namespace, name: ref.Name, uid: ref.UID,
	}
	if id := e.User.Extra[credentialKey]; len(id) > 0 && e.ImpersonatedUser == nil {
		w.instance = id[0]
	}
	return w
}

// answer decodes the object that a write returned.
func (w *write) answer(d decoder, raw json.RawMessage) error {
	var head struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Details  struct{ UID string }
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	switch head.Kind {
	case "Status":
		w.gone = w.verb == "delete" && w.subresource == ""
		if head.Details.UID != "" {
			w.uid = head.Details.UID
		}
		return nil
	case "PartialObjectMetadata":
		// The garbage collector requests only metadata. They show whether it removed the
		// finalizers.
		w.identify(&head.Metadata)
		w.gone = gone(&head.Metadata)
		return nil
	case d.kind:
	default:
		return nil // such as a Scale
	}
	body, err := d.read(&head.Metadata, raw)
	if err != nil || body == nil {
		return err
	}
	w.body = body
	w.identify(&head.Metadata)
	// For some kinds, such as ResourceQuota, an immediate delete returns the object without a
	// deletion timestamp.
	w.gone = gone(&head.Metadata) || w.verb == "delete" && head.Metadata.DeletionTimestamp == nil
	// An update that removes the last finalizer returns the previous version.
	w.own = w.Revision > 0 && (!w.gone || w.verb == "delete")
	return nil
}

func (w *write) identify(m *metav1.ObjectMeta) {
	w.name, w.uid = m.Name, string(m.UID)
	if m.Namespace != "" {
		w.namespace = m.Namespace
	}
	w.Revision, _ = strconv.ParseInt(m.ResourceVersion, 10, 64)
}

// gone reports whether an object that a write returned no longer exists: it was being deleted and
// has no finalizer.
func gone(m *metav1.ObjectMeta) bool {
	return m.DeletionTimestamp != nil && len(m.Finalizers) == 0 &&
		(m.DeletionGracePeriodSeconds == nil || *m.DeletionGracePeriodSeconds == 0)
}

// collection splits the delete of a collection into one delete for each object. The response
// contains the objects as they were before.
func (w *write) collection(e *log.Entry) (writes []*write, err error) {
	var options metav1.DeleteOptions
	if len(e.RequestObject) > 0 {
		if err := json.Unmarshal(e.RequestObject, &options); err != nil {
			return nil, err
		}
	}
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta
			Spec     struct{ NodeName string }
		}
	}
	if err := json.Unmarshal(e.ResponseObject, &list); err != nil || len(list.Items) == 0 {
		return []*write{w}, err
	}
	immediate := ptr.Deref(options.GracePeriodSeconds, 1) == 0
	for _, item := range list.Items {
		one := *w
		one.identify(&item.Metadata)
		one.Revision = 0
		// A pod on a node still has its grace period, and an object with finalizers waits for them.
		terminates := one.resource == "pods" && item.Spec.NodeName != "" && !immediate
		one.gone = len(item.Metadata.Finalizers) == 0 && !terminates
		one.forced = immediate && !one.gone
		writes = append(writes, &one)
	}
	return writes, nil
}
