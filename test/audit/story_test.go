package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-queue.dev/kube-queue/test/require"
)

// A story is a log in words, and the rules that it breaks. Statements are separated by ";". A statement is
// a command, or a subject with phrases separated by ",". A subject like a:3 creates at its first phrase the
// TFJob a that requests 3 cores (a:3b is a batch Job, a:3r a RayJob); a.unit is its unit, a.0 its first pod,
// $a in an object is an owner reference to it. A phrase is a verb with arguments; see verbs. Values are YAML.
type story struct{ name, text, breaks string }

func tellAll(t *testing.T, options Options, stories []story) {
	t.Helper()
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			s := newScript(t)
			if options.ResourceQuota {
				s.group = "default"
			}
			s.tell(story.text)
			log := s.log()
			want := strings.Fields(story.breaks)
			slices.Sort(want)
			if got := rulesOf(t, log, options); !slices.Equal(got, want) {
				report, _ := log.Check(options)
				t.Errorf("the log breaks %q, want %q\n%v", got, want, report.Err())
			}
		})
	}
}

// apart splits a text at a separator outside of brackets.
func apart(text string, separator byte) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == separator && depth == 0:
			parts = append(parts, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	parts = append(parts, strings.TrimSpace(text[from:]))
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

func (s *script) tell(text string) {
	s.t.Helper()
	for _, statement := range apart(strings.ReplaceAll(text, "\n", " "), ';') {
		subject, rest, _ := strings.Cut(statement, " ")
		if command := commands[subject]; command != nil {
			command(s, strings.TrimSpace(rest))
			continue
		}
		for _, phrase := range apart(rest, ',') {
			words := apart(phrase, ' ')
			s.phrase(subject, words[0], words[1:])
		}
	}
}

func (s *script) phrase(subject, verb string, args []string) {
	s.t.Helper()
	name, form, _ := strings.Cut(subject, ":")
	p := s.plays[name]
	switch {
	case p != nil:
	case slices.Contains([]string{"make", "errand", "of", "stranger", "quota", "undecided"}, verb):
		p = &play{s: s, name: name}
	case form != "":
		cpu := strings.TrimRight(form, "br")
		job := held[form[len(cpu):]]
		p = &play{s: s, name: name, cpu: s.number(cpu), job: s.create(admin, job.kind, name, job.object)}
	}
	if p != nil {
		s.plays[name] = p
		if f := verbs[verb]; f != nil {
			f(p, args)
			return
		}
	}
	f := objectVerbs[verb]
	if f == nil {
		s.t.Fatalf("%s: no verb %s", subject, verb)
	}
	user := ""
	if len(args) > 0 {
		user = userOf(args[0])
		args = args[1:]
	}
	f(s.object(name), user, args)
}

// object returns the object of a subject: a job, a.unit, or a.0.
func (s *script) object(name string) *thing {
	s.t.Helper()
	of, part, _ := strings.Cut(name, ".")
	p := s.plays[of]
	switch {
	case p == nil:
		s.t.Fatalf("there is no %s", name)
	case part == "unit":
		return p.unit
	case part == "object":
		return p.job
	case part != "":
		return p.made[p.s.number(part)]
	}
	return p.job
}

func (s *script) number(text string) int {
	s.t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatalf("a story: %v", err)
	}
	return n
}

func userOf(name string) string {
	if user, ok := map[string]string{"controller": controller, "extensions": extensions, "collector": collector, "steward": quotaSteward}[name]; ok {
		return user
	}
	return name
}

// reference replaces $a in an object by an owner reference.
func (s *script) reference(text string) string {
	for name, p := range s.plays {
		if p.job != nil {
			text = strings.ReplaceAll(text, "$"+name+"]", fmt.Sprintf("{kind: %s, name: %s, uid: %s, controller: true}]", p.job.text("kind"), name, p.job.text("metadata.uid")))
		}
	}
	for _, unknown := range []string{"x", "z"} {
		text = strings.ReplaceAll(text, "$"+unknown+"]", "{kind: Thing, name: t, uid: "+unknown+", controller: true}]")
	}
	return text
}

// values reads assignments like spec.active=false. A value of "-" removes the field.
func (s *script) values(prefix string, args []string) (fields []any) {
	s.t.Helper()
	for _, arg := range args {
		path, text, _ := strings.Cut(arg, "=")
		var value any
		require.NoError(s.t, yaml.Unmarshal([]byte(text), &value))
		if text == "-" {
			value = nil
		}
		if at, ok := value.(string); ok && strings.HasPrefix(at, "now+") {
			later, _ := time.ParseDuration(at[len("now+"):])
			value = s.now.Add(later).Format(metav1.RFC3339Micro)
		}
		fields = append(fields, prefix+path, value)
	}
	return fields
}

// commands are about the whole log.
var commands = map[string]func(s *script, rest string){
	"wait": func(s *script, rest string) { s.wait(s.duration(rest)) },
	// seen waits until the controller must have counted all pods.
	"seen": func(s *script, _ string) { s.wait(seen) },
	// tree creates a tree of 4 cpu, all for namespace default, or one whose root has these fields.
	"tree": func(s *script, root string) {
		root = cmp.Or(root, `max: {cpu: 4}, min: {cpu: 0}, children: [{name: team, namespaces: [default], max: {cpu: "4"}, children: null}]`)
		s.plays["tree"] = &play{s: s, job: s.create(admin, "tree", "tree", treeOf(root))}
	},
	// becomes changes the tree. later also waits until the previous tree no longer justifies anything.
	"becomes": becomes,
	"later": func(s *script, root string) {
		becomes(s, root)
		s.wait(seen)
	},
	// swap exchanges the last two lines.
	"swap": func(s *script, _ string) {
		n := len(s.entries)
		s.entries[n-1], s.entries[n-2] = s.entries[n-2], s.entries[n-1]
	},
	// mark remembers the time; requested and answered move the last line relative to it.
	"mark": func(s *script, _ string) { s.marked = s.now },
	"requested": func(s *script, rest string) {
		s.last()["requestReceivedTimestamp"] = stamp(s.marked.Add(s.duration(rest)))
	},
	"answered": func(s *script, rest string) { s.last()["stageTimestamp"] = stamp(s.marked.Add(s.duration(rest))) },
	// fails changes the status of the last response.
	"fails": func(s *script, code string) {
		s.last()["responseStatus"] = map[string]any{"code": s.number(code)}
		delete(s.last(), "responseObject")
	},
	"by": func(s *script, instance string) { by(instance, s.last()) },
	// same-version gives the last response the version of the one before, as when the last finalizer is removed.
	"same-version": func(s *script, _ string) {
		version := textAt(s.entries[len(s.entries)-2], "responseObject.metadata.resourceVersion")
		require.NoError(s.t, unstructured.SetNestedField(s.last(), version, "responseObject", "metadata", "resourceVersion"))
	},
	"dryrun":   func(s *script, _ string) { s.last()["requestURI"] = "/api/v1/namespaces/default/pods?dryRun=All" },
	"verb":     func(s *script, verb string) { s.last()["verb"] = verb },
	"metadata": func(s *script, _ string) { onlyMetadata(s.last()) },
	// lease is the controller's lease, held by its first process.
	"lease": func(s *script, _ string) {
		s.plays["lease"] = &play{s: s, job: s.create(controller, "lease", "kube-queue-controller",
			`{metadata: {namespace: kube-queue}, spec: {holderIdentity: one, leaseDurationSeconds: 15}}`)}
		by("one", s.last())
	},
	// restart makes another process the deciding one.
	"restart": func(s *script, _ string) {
		by("two", s.plays["lease"].job.patch(controller, "spec.holderIdentity", "two"))
	},
	// lost-collection deletes the pods of a namespace, without an answer.
	"lost-collection": func(s *script, namespace string) {
		s.entry(collector, "deletecollection", pods, "", namespace, "", 504, nil)
	},
}

func becomes(s *script, root string) {
	tree := s.plays["tree"].job
	tree.patch(admin, "spec", s.parse(treeOf(root))["spec"])
}

func (s *script) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatalf("a story: %v", err)
	}
	return d
}

// verbs are what jobs do, and what users do with other objects that have a unit.
var verbs = map[string]func(p *play, args []string){
	"held":    func(*play, []string) {},
	"enqueue": func(p *play, _ []string) { p.enqueue() }, "dequeue": func(p *play, _ []string) { p.dequeue() },
	"release": func(p *play, _ []string) { p.release() }, "runs": func(p *play, _ []string) { p.runs() },
	"admit": func(p *play, _ []string) { p.admit() }, "finish": func(p *play, _ []string) { p.finish() },
	"endunit": func(p *play, _ []string) { p.endUnit() }, "end": func(p *play, _ []string) { p.end() },
	"orphan": func(p *play, _ []string) { p.orphan() }, "decide": func(p *play, _ []string) { p.decide() },
	"start": func(p *play, args []string) { p.start(p.s.number(append(args, strconv.Itoa(p.cpu))[0])) },
	// forget keeps the pods running when the job ends or is evicted.
	"forget":  func(p *play, _ []string) { p.pods = nil },
	"suspend": func(p *play, args []string) { p.suspend(userOf(args[0]), true) },
	"evict":   func(p *play, args []string) { p.evict(append(args, "Preempted")[0]) },
	"event": func(p *play, _ []string) {
		p.s.create(extensions, "event", fmt.Sprintf("e%d", p.s.revision), "{type: Normal, reason: Released, involvedObject: "+p.ref()+"}")
	},
	"shows": func(p *play, args []string) {
		p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", args[0])
	},
	// errand creates a unit without a job. Its arguments are namespace, group, cores, and the UID of its object.
	"errand": func(p *play, args []string) {
		p.path = args[1]
		p.unit = p.s.create(admin, "unit", "errand-"+p.name, fmt.Sprintf(`{metadata: {namespace: %s},
			spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t, uid: "%s"}, resource: {cpu: %s}}}`, args[0], append(args, "")[3], args[2]))
	},
	// make creates an object. Its arguments are kind, user and fields.
	"make": func(p *play, args []string) {
		p.cpu = max(p.cpu, 1)
		p.job = p.s.create(userOf(args[1]), args[0], p.name, args[2])
		if args[0] == "unit" {
			p.unit = p.job
		}
	},
	// of creates a pod of an object, given by name or UID. Its argument is the cores.
	"of": func(p *play, args []string) {
		owner := args[0]
		if of := p.s.plays[owner]; of != nil && of.job != nil {
			owner = of.job.text("metadata.uid")
		}
		metadata := "ownerReferences: [{kind: Thing, name: t, uid: " + owner + ", controller: true}], namespace: " + append(args, "default")[2]
		p.job = p.s.create(operator, "pod", p.name, podOf(metadata, args[1]))
	},
	// stranger creates a pod without an owner. Its argument is the cores.
	"stranger": func(p *play, args []string) {
		p.job = p.s.create(admin, "pod", p.name, podOf("", args[0]))
	},
	// quota creates a ResourceQuota with these limits and fields, and its status as the quota controller does.
	"quota": func(p *play, args []string) {
		p.limit(args)
		p.decide()
		p.s.wait(5 * time.Second)
	},
	"undecided": func(p *play, args []string) { p.limit(args) },
}

// objectVerbs are writes of an object by a user, with values.
var objectVerbs = map[string]func(th *thing, user string, args []string){
	"patch":      func(th *thing, user string, args []string) { th.patch(user, th.s.values("", args)...) },
	"status":     func(th *thing, user string, args []string) { th.patchStatus(user, th.s.values("status.", args)...) },
	"resize":     func(th *thing, user string, _ []string) { th.change(user, "resize", nil) },
	"conditions": func(th *thing, user string, args []string) { th.conditions(user, args...) },
	"conflict":   func(th *thing, user string, _ []string) { th.write(user, "patch", "status", 409) },
	"again":      func(th *thing, user string, _ []string) { th.write(user, "create", "", 201) },
	"repeat": func(th *thing, user string, _ []string) { // a write that changes nothing
		th.s.entry(user, "patch", th.resource, "", "default", th.text("metadata.name"), 200, th.obj)
	},
	// collection deletes all objects of a kind, and collectnow does so without a grace period. The response has one
	// of them.
	"collection": func(th *thing, user string, _ []string) { th.collect(user) },
	"collectnow": func(th *thing, user string, _ []string) {
		th.collect(user)["requestObject"] = map[string]any{"kind": "DeleteOptions", "gracePeriodSeconds": 0}
	},
	"remove":    func(th *thing, user string, _ []string) { th.remove(user) },
	"removepod": func(th *thing, user string, _ []string) { th.terminate(user, 0) },
	"deleted":   func(th *thing, user string, _ []string) { th.write(user, "delete", "", 200) },
	"terminate": func(th *thing, user string, args []string) { th.terminate(user, th.s.number(args[0])) },
	"disown":    func(th *thing, _ string, _ []string) { th.loseOwners() },
	// lost and stored are writes without a response: the first was not carried out, the second was.
	"lost":   func(th *thing, user string, _ []string) { th.unanswered(user) },
	"stored": func(th *thing, user string, args []string) { th.unanswered(user, th.s.values("", args)...) },
}
