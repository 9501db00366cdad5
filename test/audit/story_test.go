package audit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
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
	name, cpu, _ := strings.Cut(subject, ":")
	p := s.plays[name]
	switch {
	case p != nil:
	case slices.Contains([]string{"make", "errand", "of", "stranger", "quota", "undecided"}, verb):
		p = &play{s: s, name: name}
	case strings.HasSuffix(cpu, "b"):
		p = s.batchJob(name, number(cpu[:len(cpu)-1]))
	case strings.HasSuffix(cpu, "r"):
		p = &play{s: s, cpu: number(cpu[:len(cpu)-1]), job: s.create(admin, "ray.io/v1/rayjobs", "{apiVersion: ray.io/v1, kind: RayJob, metadata: {name: "+name+"}, spec: {suspend: true}}")}
	case cpu != "":
		p = s.tfjob(name, number(cpu))
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
		return p.made[number(part)]
	}
	return p.job
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
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
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			s.t.Fatal(err)
		}
		if text == "-" {
			value = nil
		}
		if at, ok := value.(string); ok && strings.HasPrefix(at, "now+") {
			later, _ := time.ParseDuration(at[len("now+"):])
			value = s.now.Add(later).Format(time.RFC3339Nano)
		}
		fields = append(fields, prefix+path, value)
	}
	return fields
}

// kinds are what can be made: resource and kind.
var kindsToMake = map[string][2]string{
	"tfjob": {tfjobs, "TFJob"}, "job": {batchJobs, "Job"}, "rayjob": {"ray.io/v1/rayjobs", "RayJob"}, "raycluster": {"ray.io/v1/rayclusters", "RayCluster"},
	"jobset": {"jobset.x-k8s.io/v1alpha2/jobsets", "JobSet"}, "workflow": {"argoproj.io/v1alpha1/workflows", "Workflow"},
	"spark": {"sparkoperator.k8s.io/v1beta2/sparkapplications", "SparkApplication"}, "mpijob": {"kubeflow.org/v2beta1/mpijobs", "MPIJob"},
	"pod": {pods, "Pod"}, "unit": {units, "QueueUnit"}, "queue": {queues, "Queue"}, "tree": {trees, "ElasticQuotaTree"}, "quota": {quotas, "ResourceQuota"},
	"lease": {leases, "Lease"}, "event": {"/v1/events", "Event"},
}

// commands are about the whole log.
var commands = map[string]func(s *script, rest string){
	"wait": func(s *script, rest string) {
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.wait(d)
	},
	// seen waits until the controller must count all pods.
	"seen": func(s *script, _ string) { s.wait(3 * time.Second) },
	// tree is the one of fourCPU, or has a root with these fields.
	"tree": func(s *script, root string) {
		text := fourCPU
		if root != "" {
			text = treeOf(root)
		}
		s.plays["tree"] = &play{s: s, job: s.create(admin, trees, text)}
	},
	// becomes changes the tree, later also waits until the previous one justifies nothing.
	"becomes": func(s *script, root string) { s.setTree(root) },
	"later": func(s *script, root string) {
		s.setTree(root)
		s.wait(3 * time.Second)
	},
	// swap exchanges the last two lines.
	"swap": func(s *script, _ string) {
		n := len(s.entries)
		s.entries[n-1], s.entries[n-2] = s.entries[n-2], s.entries[n-1]
	},
	// mark remembers the time; requested and answered move the last line relative to it.
	"mark":      func(s *script, _ string) { s.marked = s.now },
	"requested": func(s *script, rest string) { s.stamp("requestReceivedTimestamp", rest) },
	"answered":  func(s *script, rest string) { s.stamp("stageTimestamp", rest) },
	// fails changes the status of the last response.
	"fails": func(s *script, code string) {
		last := s.entries[len(s.entries)-1]
		last["responseStatus"] = map[string]any{"code": number(code)}
		delete(last, "responseObject")
	},
	"by":   func(s *script, instance string) { by(instance, s.entries[len(s.entries)-1]) },
	"asks": func(s *script, object string) { s.asking(s.parse(object)) },
	// unanswered makes the last create one without an answer.
	"unanswered": func(s *script, _ string) { s.withoutAnswer(s.entries[len(s.entries)-1]) },
	// first-unanswered adds before the last create one that the webhook would have changed, without an answer.
	"first-unanswered": func(s *script, _ string) {
		first := maps.Clone(s.entries[len(s.entries)-2])
		s.withoutAnswer(first)
		unstructured.RemoveNestedField(first["requestObject"].(map[string]any), "spec", "runPolicy", "suspend")
		s.entries[len(s.entries)-2] = first
	},
	// same-version gives the last response the version of the one before, as the removal of a last finalizer has.
	"same-version": func(s *script, _ string) {
		n := len(s.entries)
		version, _, _ := unstructured.NestedString(s.entries[n-2], "responseObject", "metadata", "resourceVersion")
		if err := unstructured.SetNestedField(s.entries[n-1], version, "responseObject", "metadata", "resourceVersion"); err != nil {
			s.t.Fatal(err)
		}
	},
	"dryrun": func(s *script, _ string) {
		s.entries[len(s.entries)-1]["requestURI"] = "/api/v1/namespaces/default/pods?dryRun=All"
	},
	"verb":     func(s *script, verb string) { s.entries[len(s.entries)-1]["verb"] = verb },
	"metadata": func(s *script, _ string) { onlyMetadata(s.entries[len(s.entries)-1]) },
	"lease": func(s *script, _ string) {
		s.plays["lease"] = &play{s: s, job: s.lease()}
	},
	// restart makes another process the one that decides.
	"restart": func(s *script, _ string) {
		by("two", s.plays["lease"].job.patch(controller, "spec.holderIdentity", "two"))
	},
	// lost-collection deletes the pods of a namespace, without an answer.
	"lost-collection": func(s *script, namespace string) {
		s.entry(collector, "deletecollection", pods, "", namespace, "", 504, nil)
	},
	"twice": func(s *script, cpu string) { s.twice(number(cpu)) },
}

func (s *script) stamp(field, shift string) {
	d, err := time.ParseDuration(shift)
	if err != nil {
		s.t.Fatal(err)
	}
	s.entries[len(s.entries)-1][field] = s.marked.Add(d).Format("2006-01-02T15:04:05.000000Z")
}

// verbs are what jobs do, and users of other things that have a unit.
var verbs = map[string]func(p *play, args []string){
	"held":    func(*play, []string) {},
	"enqueue": func(p *play, _ []string) { p.enqueue() }, "dequeue": func(p *play, _ []string) { p.dequeue() },
	"release": func(p *play, _ []string) { p.release() }, "runs": func(p *play, _ []string) { p.runs() },
	"admit": func(p *play, _ []string) {
		if p.path != "" {
			p.unit.patchStatus(controller, "status.phase", "Dequeued", "status.quota", p.path)
			return
		}
		if p.unit == nil {
			p.enqueue()
		}
		p.dequeue()
		p.release()
		p.start()
		p.runs()
	},
	"start": func(p *play, args []string) {
		cpu := p.cpu
		if len(args) > 0 {
			cpu = number(args[0])
		}
		p.startWith(cpu)
	},
	"finish":  func(p *play, _ []string) { p.finish() },
	"endunit": func(p *play, _ []string) { p.endUnit() },
	"end": func(p *play, _ []string) {
		if p.path != "" {
			p.unit.patchStatus(admin, "status.phase", "Succeeded")
			return
		}
		p.end()
	},
	// forget lets the pods run on when the job ends or is evicted.
	"forget":  func(p *play, _ []string) { p.pods = nil },
	"suspend": func(p *play, args []string) { p.suspend(userOf(args[0])) },
	"evict":   func(p *play, args []string) { p.evictFor(append(args, "Preempted")[0]) },
	"orphan":  func(p *play, _ []string) { p.orphan() },
	"event":   func(p *play, _ []string) { p.event(extensions, "Released") },
	"shows": func(p *play, args []string) {
		p.unit.patchStatus(controller, "status.phase", "Enqueued", "status.reason", args[0])
	},
	"refused": func(p *play, args []string) { p.refused(strings.Join(args, " ")) },
	// errand creates a unit without a job: its namespace, group and cores, and the UID of its object.
	"errand": func(p *play, args []string) {
		p.path = args[1]
		p.unit = p.s.create(admin, units, fmt.Sprintf(`{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: QueueUnit,
  metadata: {name: errand-%s, namespace: %s}, spec: {consumerRef: {apiVersion: example.com/v1, kind: Thing, name: t, uid: "%s"}, resource: {cpu: %s}}}`,
			p.name, args[0], append(args, "")[3:][0], args[2]))
	},
	// make creates an object: its kind and user, and its fields.
	"make": func(p *play, args []string) {
		kind := kindsToMake[args[0]]
		object := p.s.parse(args[2])
		parts := strings.Split(kind[0], "/")
		object["kind"], object["apiVersion"] = kind[1], strings.TrimPrefix(parts[0]+"/"+parts[1], "/")
		meta, _ := object["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			object["metadata"] = meta
		}
		if meta["name"] == nil {
			meta["name"] = p.name
		}
		raw, _ := yaml.Marshal(object)
		p.cpu = max(p.cpu, 1)
		p.job = p.s.create(userOf(args[1]), kind[0], string(raw))
		if args[0] == "unit" {
			p.unit = p.job
		}
	},
	// of creates a pod of an object, by its name or UID: its cores, and its namespace.
	"of": func(p *play, args []string) {
		owner := args[0]
		if of := p.s.plays[owner]; of != nil && of.job != nil {
			owner = of.job.text("metadata.uid")
		}
		p.job = p.s.create(operator, pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: %s, ownerReferences: [{kind: Thing, name: t, uid: %s, controller: true}]},
  spec: {containers: [{name: main, resources: {requests: {cpu: %s}}}]}, status: {phase: Pending}}`, p.name, append(args, "default")[2], owner, args[1]))
	},
	// stranger creates a pod without an owner: its cores, and more of its spec.
	"stranger": func(p *play, args []string) {
		p.job = p.s.create(admin, pods, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s},
  spec: {%s containers: [{name: main, resources: {requests: {cpu: %s}}}]}, status: {phase: Pending, qosClass: Burstable}}`, p.name, more(args[1:]), args[0]))
	},
	// quota creates a ResourceQuota, and its status as the quota controller.
	"quota": func(p *play, args []string) {
		p.undecided(args)
		p.decide()
		p.s.wait(5 * time.Second)
	},
	"undecided": func(p *play, args []string) { p.undecided(args) },
	"decide":    func(p *play, _ []string) { p.decide() },
}

// more returns the fields of an object that is given, to be part of another.
func more(args []string) string {
	text := strings.Join(args, " ")
	if text == "" {
		return ""
	}
	return text[1:len(text)-1] + ", "
}

func (p *play) undecided(args []string) {
	p.job = p.s.create(admin, quotas, fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota, spec: {hard: %s, %s}, metadata: {name: %s}}`, args[0], more(args[1:]), p.name))
}

func (p *play) decide() {
	hard, _, _ := unstructured.NestedMap(p.job.obj, "spec", "hard")
	used := map[string]any{}
	for key := range hard {
		used[key] = "0"
	}
	p.job.patchStatus(quotaSteward, "status.hard", hard, "status.used", used)
}

func (s *script) parse(text string) map[string]any {
	s.t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(s.reference(text)), &object); err != nil {
		s.t.Fatal(err)
	}
	return object
}

// objectVerbs are writes on an object: by a user, with values.
var objectVerbs = map[string]func(th *thing, user string, args []string){
	"patch":  func(th *thing, user string, args []string) { th.patch(user, th.s.values("", args)...) },
	"status": func(th *thing, user string, args []string) { th.patchStatus(user, th.s.values("status.", args)...) },
	"resize": func(th *thing, user string, _ []string) { th.change(user, "resize", nil) },
	"conditions": func(th *thing, user string, args []string) {
		th.conditions(args...)
		th.patchStatus(user)
	},
	"conflict": func(th *thing, user string, _ []string) { th.write(user, "patch", "status", 409) },
	"again":    func(th *thing, user string, _ []string) { th.write(user, "create", "", 201) },
	"repeat": func(th *thing, user string, _ []string) { // a write that changes nothing
		th.s.entry(user, "patch", th.resource, "", "default", th.text("metadata.name"), 200, th.obj)
	},
	// collection deletes all objects of a kind, of which the response has one.
	"collection": func(th *thing, user string, _ []string) {
		th.s.entry(user, "deletecollection", th.resource, "", "default", "", 200, map[string]any{"kind": "List", "items": []any{th.obj}})
	},
	"remove":    func(th *thing, user string, _ []string) { th.remove(user) },
	"removepod": func(th *thing, user string, _ []string) { th.removePod(user) },
	"deleted":   func(th *thing, user string, _ []string) { th.write(user, "delete", "", 200) },
	"terminate": func(th *thing, user string, args []string) { th.terminate(user, number(args[0])) },
	"disown":    func(th *thing, _ string, _ []string) { th.loseOwners() },
	// lost and stored write a status without an answer, not carried out or carried out.
	"lost":   func(th *thing, user string, args []string) { th.unanswered(false, user, th.s.values("", args)...) },
	"stored": func(th *thing, user string, args []string) { th.unanswered(true, user, th.s.values("", args)...) },
}
