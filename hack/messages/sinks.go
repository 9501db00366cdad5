package main

import (
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// section is a part of the page: messages that users see at one place.
type section struct {
	title string
	// about describes where users see them.
	about string
	// writers are the folders whose packages write there: a message that is written by
	// another one is an error, since nobody would expect it there.
	writers []string
}

// The sections, in the order of the page.
var (
	unitStatus = section{"Status of a QueueUnit", "`status.message` and the messages of the conditions of a QueueUnit.",
		[]string{"pkg/lifecycle", "pkg/controller", "extensions/provisioning"}}
	treeStatus = section{"Status of an ElasticQuotaTree", "The messages of the conditions of an ElasticQuotaTree.",
		[]string{"pkg/controller/backend/elasticquota"}}
	jobStatus = section{"Status of a job", "The messages of the conditions that kube-queue sets on a job.",
		[]string{"extensions"}}
	reviewStatus = section{"Answers to reviews", "`status.message` and the messages of `status.wouldAdmit` of reviews of group visibility.kube-queue.dev.",
		[]string{"pkg/visibility"}}
	event = section{"Events", "The messages of events on jobs and on ElasticQuotaTrees.",
		[]string{"pkg/events"}}
	admission = section{"Admission answers", "The answers of the API server to requests that a policy or a schema of kube-queue rejects.", nil}
	exit      = section{"Exit errors", "What a program prints before it exits with a status other than 0.",
		[]string{"cmd", "pkg/program"}}
)

// statuses are the sections of statuses; the longest folder that a package is in counts.
var statuses = []section{unitStatus, treeStatus, jobStatus, reviewStatus}

// notShown are packages that write messages into objects which no user reads in the
// cluster, with the reason.
var notShown = map[string]string{
	"pkg/plugin/command":   "answers about files, which the kubectl plugin prints",
	"pkg/plugin/objects":   "answers of the kubectl plugin where kube-queue-controller does not answer, which repeat the message of a QueueUnit",
	"pkg/simulator/report": "the report of kube-queue-simulator, which repeats the message of a QueueUnit",
}

// isAPI reports whether a package holds types of objects of the API.
func isAPI(path string) bool { return strings.Contains(path, "/apis/") }

// sinks finds everything that a user reads.
type sinks struct {
	*flow
	module string
	// known holds the sinks of each section.
	known    map[string][]node
	problems []problem
}

func findSinks(f *flow, module string) *sinks {
	s := &sinks{flow: f, module: module, known: map[string][]node{}}
	for _, function := range f.functions {
		for _, block := range function.Blocks {
			for _, instruction := range block.Instrs {
				s.look(function, instruction)
			}
		}
	}
	s.findExits()
	return s
}

func (s *sinks) look(in *ssa.Function, instruction ssa.Instruction) {
	switch i := instruction.(type) {
	case *ssa.Store:
		address, is := i.Addr.(*ssa.FieldAddr)
		if !is || !isMessageField(address.X.Type(), address.Field) {
			return
		}
		s.written(in, i.Pos(), typeName(address.X.Type()), i.Val)
	case *ssa.MapUpdate:
		if isConstant(i.Key, "message") {
			s.written(in, i.Pos(), nil, i.Value)
		}
	case ssa.CallInstruction:
		s.lookAtCall(in, i)
	}
	for _, operand := range instruction.Operands(nil) {
		c, is := (*operand).(*ssa.Const)
		if is && c.Value != nil && c.Value.Kind() == constant.String && strings.Contains(constant.StringVal(c.Value), `"message"`) {
			s.fail(instruction.Pos(), in, `a patch with "message" is written as text, where its message cannot be found; write it as a map or a struct and marshal that`)
		}
	}
}

// lookAtCall finds ways around the places where messages are known to be written.
func (s *sinks) lookAtCall(in *ssa.Function, call ssa.CallInstruction) {
	common := call.Common()
	name := ""
	if common.IsInvoke() {
		name = "(" + types.TypeString(common.Value.Type(), nil) + ")." + common.Method.Name()
	} else if callee := common.StaticCallee(); callee != nil {
		name = fullName(callee)
	}
	path := strings.TrimPrefix(packageOf(in), s.module+"/")
	switch {
	case strings.HasPrefix(name, "(k8s.io/client-go/tools/record.EventRecorder)"), strings.HasPrefix(name, "(k8s.io/client-go/tools/events.EventRecorder)"):
		s.fail(call.Pos(), in, "an event is reported by client-go's recorder; use pkg/events")
	case strings.HasSuffix(name, "core/v1.EventsGetter).Events") && !within(path, event.writers):
		s.fail(call.Pos(), in, "events are written outside of pkg/events; use its Writer")
	case strings.HasPrefix(name, "log.Fatal"), strings.HasPrefix(name, "log.Panic"), strings.HasPrefix(name, "k8s.io/klog/v2.Fatal"), strings.HasPrefix(name, "k8s.io/klog/v2.Exit"):
		s.fail(call.Pos(), in, "the program is ended by "+name+"; return the error to main")
	case strings.HasPrefix(name, "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.SetNested") && slices.ContainsFunc(s.strings(common.Args), func(t string) bool { return t == "message" }):
		s.fail(call.Pos(), in, "a message is set by "+name+", which is not followed; write it as a map or a struct")
	}
}

// strings are the constant texts among the arguments of a variadic call.
func (s *sinks) strings(args []ssa.Value) []string {
	var texts []string
	for _, arg := range args {
		for _, n := range append(s.updatesOf(arg), arg) {
			if c, is := n.(*ssa.Const); is && c.Value != nil && c.Value.Kind() == constant.String {
				texts = append(texts, constant.StringVal(c.Value))
			}
		}
	}
	return texts
}

func (s *sinks) updatesOf(v ssa.Value) []ssa.Value {
	slice, is := v.(*ssa.Slice)
	if !is {
		return nil
	}
	var values []ssa.Value
	for _, n := range s.updates(node{value: slice.X}, slice.X) {
		values = append(values, n.value)
	}
	return values
}

// written records a message of an object. The object is of the type; nil for a patch.
func (s *sinks) written(in *ssa.Function, pos token.Pos, object *types.TypeName, value ssa.Value) {
	path := strings.TrimPrefix(packageOf(in), s.module+"/")
	if _, is := notShown[path]; is {
		return
	}
	n := node{value: value, in: in}
	kind := ""
	if object != nil && object.Pkg() != nil {
		kind = object.Pkg().Path() + "." + object.Name()
	}
	switch {
	case kind == "k8s.io/apimachinery/pkg/apis/meta/v1.Status":
		s.add(admission, n)
	case kind == "k8s.io/api/core/v1.Event" || within(path, event.writers):
		if !within(path, event.writers) {
			s.fail(pos, in, "an event is built outside of pkg/events; use its Writer")
			return
		}
		s.add(event, n)
	default:
		found, longest := section{}, ""
		for _, status := range statuses {
			for _, folder := range status.writers {
				if within(path, []string{folder}) && len(folder) > len(longest) {
					found, longest = status, folder
				}
			}
		}
		if longest == "" {
			s.fail(pos, in, "a status is written by a package that hack/messages does not know; list its folder in hack/messages/sinks.go with the object that users see it on")
			return
		}
		s.add(found, n)
	}
}

func (s *sinks) add(to section, n node) { s.known[to.title] = append(s.known[to.title], n) }

func (s *sinks) fail(pos token.Pos, in *ssa.Function, text string) {
	if !pos.IsValid() {
		pos = in.Pos()
	}
	s.problems = append(s.problems, problem{s.fset.Position(pos), text})
}

// findExits finds what a program prints before it ends: what is printed or logged by the
// functions that end the process, and by those whose result becomes its status.
func (s *sinks) findExits() {
	ending := map[*ssa.Function]bool{}
	for _, function := range s.functions {
		for _, block := range function.Blocks {
			for _, instruction := range block.Instrs {
				call, is := instruction.(ssa.CallInstruction)
				if is && s.isExit(call) {
					ending[function] = true
					s.deciding(call.Common().Args[0], ending)
				}
			}
		}
	}
	functions := slices.SortedFunc(maps.Keys(ending), compare)
	for _, function := range functions {
		for _, block := range function.Blocks {
			for _, instruction := range block.Instrs {
				if call, is := instruction.(*ssa.Call); is {
					s.printed(function, call)
				}
			}
		}
	}
}

// isExit reports whether a call ends the process.
func (s *sinks) isExit(call ssa.CallInstruction) bool {
	common := call.Common()
	if callee := common.StaticCallee(); callee != nil {
		return fullName(callee) == "os.Exit"
	}
	for _, w := range s.stored[loadedField(common.Value)] {
		if f, is := w.value.(*ssa.Function); is && fullName(f) == "os.Exit" {
			return true
		}
	}
	return false
}

func loadedField(v ssa.Value) *types.Var {
	if load, is := v.(*ssa.UnOp); is {
		if address, is := load.X.(*ssa.FieldAddr); is {
			return fieldOf(address.X.Type(), address.Field)
		}
	}
	return nil
}

// deciding adds the functions whose result an exit status is.
func (s *sinks) deciding(status ssa.Value, ending map[*ssa.Function]bool) {
	call, is := status.(*ssa.Call)
	if !is {
		return
	}
	callee := call.Common().StaticCallee()
	if !isOwn(callee) || ending[callee] {
		return
	}
	ending[callee] = true
	for _, n := range s.returned(nil, callee, 0, nil) {
		s.deciding(n.value, ending)
	}
}

// printed records what is printed or logged, and every error that is passed on.
func (s *sinks) printed(in *ssa.Function, call *ssa.Call) {
	callee := call.Common().StaticCallee()
	if callee == nil {
		return
	}
	args := call.Common().Args
	switch name := fullName(callee); {
	case name == "(k8s.io/klog/v2.Logger).Error" || name == "(github.com/go-logr/logr.Logger).Error":
		s.add(exit, node{value: args[1], in: in})
		s.add(exit, node{value: args[2], in: in})
	case isWriterFirst(name) && name != "fmt.Appendf":
		s.add(exit, node{value: call, in: in})
	default:
		for _, arg := range args {
			if isErrorType(arg.Type()) {
				s.add(exit, node{value: arg, in: in})
			}
		}
	}
}

// isMessageField reports whether a field is written to objects as "message".
func isMessageField(t types.Type, at int) bool {
	t = t.Underlying()
	if pointer, is := t.(*types.Pointer); is {
		t = pointer.Elem().Underlying()
	}
	s, is := t.(*types.Struct)
	if !is {
		return false
	}
	name, _, _ := strings.Cut(reflect.StructTag(s.Tag(at)).Get("json"), ",")
	return name == "message"
}

func isConstant(v ssa.Value, text string) bool {
	if converted, is := v.(*ssa.MakeInterface); is {
		v = converted.X
	}
	c, is := v.(*ssa.Const)
	return is && c.Value != nil && c.Value.Kind() == constant.String && constant.StringVal(c.Value) == text
}

// within reports whether a package is in one of the folders.
func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

// collect follows all sinks of a section.
func (s *sinks) collect(of section) ([]message, []problem) {
	c := newCollector(s.flow)
	for _, n := range s.known[of.title] {
		c.visit(n)
	}
	return c.messages(), c.allProblems()
}
