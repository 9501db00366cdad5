package main

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// maxFrames bounds how many calls deep a value is followed before the callers are
// forgotten: beyond that, a parameter is what any caller passes.
const maxFrames = 4

// frame is a call that a value was followed into: its parameters are the arguments of that
// call.
type frame struct {
	call   ssa.CallInstruction
	callee *ssa.Function
	parent *frame
	depth  int
}

// node is a value that is followed. Of a list or a map, it is all text that the list or
// map holds.
type node struct {
	value ssa.Value
	// at is the call that the value's function was entered by; nil if it is not known.
	at *frame
	// in is the function that uses the value, for values that belong to none.
	in *ssa.Function
}

// step is where the text of a node comes from. One of the fields is set; none is for data,
// which the program did not write.
type step struct {
	// from: the text is that of one of these.
	from []node
	// within: the text contains that of these.
	within []node
	// root: the text begins here.
	root *root
	// problem says why the value cannot be followed.
	problem string
}

// root is a text that the program writes.
type root struct {
	// A constant, ...
	constant *ssa.Const
	// ... or two texts one after the other, ...
	left, right *node
	// ... or a format, ...
	format *node
	// ... and what is printed by it, or without one.
	args []node
	// in is the function that writes the text.
	in *ssa.Function
	// isError reports whether the text is that of an error.
	isError bool
}

// flow follows values backwards.
type flow struct {
	*program
	frames map[frame]*frame
	// resolving are the function values that are being followed: one that depends on itself
	// is followed once.
	resolving map[node]bool
}

func newFlow(p *program) *flow {
	return &flow{program: p, frames: map[frame]*frame{}, resolving: map[node]bool{}}
}

func (f *flow) enter(call ssa.CallInstruction, callee *ssa.Function, parent *frame) *frame {
	depth := 1
	if parent != nil {
		depth = parent.depth + 1
	}
	if depth > maxFrames {
		return nil
	}
	key := frame{call, callee, parent, depth}
	if f.frames[key] == nil {
		f.frames[key] = &key
	}
	return f.frames[key]
}

// next is a node of the same function.
func (n node) next(v ssa.Value) node { return node{value: v, at: n.at, in: n.function()} }

func (n node) nexts(values ...ssa.Value) []node {
	var nodes []node
	for _, v := range values {
		nodes = append(nodes, n.next(v))
	}
	return nodes
}

// function returns the function that has or uses the value.
func (n node) function() *ssa.Function {
	if parent := n.value.Parent(); parent != nil {
		return parent
	}
	return n.in
}

// elsewhere are nodes that are reached through memory: the calls are not known.
func elsewhere(list []where) []node {
	var nodes []node
	for _, w := range list {
		nodes = append(nodes, node{value: w.value, in: w.in})
	}
	return nodes
}

// step follows a node one step.
func (f *flow) step(n node) step {
	if _, is := n.value.(*ssa.Range); !is && !holdsText(n.value.Type(), 0) {
		return step{}
	}
	switch v := n.value.(type) {
	case *ssa.Const:
		if v.Value == nil || !isString(v.Type()) {
			return step{}
		}
		return step{root: &root{constant: v, in: n.in}}
	case *ssa.Parameter:
		return step{from: f.arguments(n, v)}
	case *ssa.FreeVar:
		return step{from: f.bindings(v)}
	case *ssa.Phi:
		return step{from: n.nexts(v.Edges...)}
	case *ssa.ChangeType:
		return step{from: n.nexts(v.X)}
	case *ssa.ChangeInterface:
		return step{from: n.nexts(v.X)}
	case *ssa.MakeInterface:
		return f.boxed(n, v)
	case *ssa.TypeAssert:
		return step{from: n.nexts(v.X)}
	case *ssa.Convert:
		if holdsText(v.X.Type(), 0) {
			return step{from: n.nexts(v.X)}
		}
		return step{}
	case *ssa.BinOp:
		if v.Op == token.ADD && isString(v.Type()) {
			left, right := n.next(v.X), n.next(v.Y)
			return step{root: &root{left: &left, right: &right, in: v.Parent()}}
		}
		return step{}
	case *ssa.UnOp:
		return f.unary(n, v)
	case *ssa.Slice:
		if isString(v.X.Type()) {
			return step{within: n.nexts(v.X)}
		}
		return step{from: append(n.nexts(v.X), f.updates(n, v)...)}
	case *ssa.Lookup:
		return step{from: n.nexts(v.X)}
	case *ssa.Index:
		return step{from: n.nexts(v.X)}
	case *ssa.IndexAddr:
		return step{from: n.nexts(v.X)}
	case *ssa.Field:
		return f.field(fieldOf(v.X.Type(), v.Field))
	case *ssa.FieldAddr:
		return f.field(fieldOf(v.X.Type(), v.Field))
	case *ssa.Next:
		return step{from: n.nexts(v.Iter)}
	case *ssa.Range:
		return step{from: n.nexts(v.X)}
	case *ssa.Extract:
		return f.extracted(n, v)
	case *ssa.Call:
		return f.result(n, v, 0)
	case *ssa.Alloc:
		return step{from: f.updates(n, v)}
	case *ssa.MakeMap:
		return step{from: f.updates(n, v)}
	case *ssa.MakeSlice:
		return step{from: f.updates(n, v)}
	case *ssa.Global:
		return f.global(v)
	case *ssa.MakeClosure:
		return step{from: f.yielded(v.Fn.(*ssa.Function))}
	case *ssa.Function:
		return step{from: f.yielded(v)}
	case *ssa.MakeChan, *ssa.Builtin:
		return step{}
	default:
		return step{problem: "a value of this form cannot be followed; build the message with constants, fmt.Sprintf or +"}
	}
}

func (f *flow) unary(n node, v *ssa.UnOp) step {
	switch v.Op {
	case token.ARROW:
		return step{from: elsewhere(f.sent[elementType(v.X.Type())])}
	case token.MUL:
		switch address := v.X.(type) {
		case *ssa.FieldAddr:
			s := f.field(fieldOf(address.X.Type(), address.Field))
			s.from = append(s.from, f.updates(n, v)...)
			return s
		case *ssa.Global:
			s := f.global(address)
			s.from = append(s.from, f.updates(n, v)...)
			return s
		default:
			return step{from: append(n.nexts(v.X), f.updates(n, v)...)}
		}
	default:
		return step{}
	}
}

// field returns what is stored in a field anywhere. The fields of objects of the API are
// data: what they hold was written to the API server or read from it.
func (f *flow) field(field *types.Var) step {
	if field == nil || field.Pkg() == nil || !f.own[field.Pkg()] || isAPI(field.Pkg().Path()) {
		return step{}
	}
	nodes := elsewhere(f.stored[field])
	for _, address := range f.fieldAddrs[field] {
		nodes = append(nodes, f.updates(node{value: address}, address)...)
		for _, user := range *address.Referrers() {
			if load, is := user.(*ssa.UnOp); is {
				nodes = append(nodes, f.updates(node{value: load}, load)...)
			}
		}
	}
	return step{from: nodes}
}

// global returns what is stored in a package-level variable anywhere.
func (f *flow) global(v *ssa.Global) step {
	if v.Pkg == nil || !f.own[v.Pkg.Pkg] {
		return step{}
	}
	nodes := elsewhere(f.globals[v])
	for _, use := range f.globalUses[v] {
		switch i := use.(type) {
		case *ssa.UnOp:
			nodes = append(nodes, f.updates(node{value: i}, i)...)
		case *ssa.IndexAddr:
			nodes = append(nodes, f.updates(node{value: i}, i)...)
		}
	}
	if len(nodes) == 0 && holdsText(v.Type(), 0) && !hasZeroValueUse(v) {
		return step{problem: "nothing in the code sets the variable " + v.Name() + ", so its text is not known; write the text as a constant"}
	}
	return step{from: nodes}
}

// hasZeroValueUse reports whether a variable without any value is not of interest: the
// linker sets it, as the version of the program.
func hasZeroValueUse(v *ssa.Global) bool {
	pointer, is := v.Type().Underlying().(*types.Pointer)
	return is && isString(pointer.Elem())
}

// bindings returns what a closure was given for a variable of the function around it.
func (f *flow) bindings(v *ssa.FreeVar) []node {
	closure := v.Parent()
	at := slices.Index(closure.FreeVars, v)
	var nodes []node
	for _, made := range f.closures[closure] {
		nodes = append(nodes, node{value: made.Bindings[at], in: made.Parent()})
	}
	return append(nodes, f.updates(node{value: v}, v)...)
}

// arguments returns what is passed for a parameter.
func (f *flow) arguments(n node, v *ssa.Parameter) []node {
	callee := v.Parent()
	at := slices.Index(callee.Params, v)
	nodes := f.updates(n, v)
	if n.at != nil && n.at.callee == callee {
		if arg := argument(n.at.call.Common(), at); arg != nil {
			return append(nodes, node{value: arg, at: n.at.parent, in: n.at.call.Parent()})
		}
		return nodes
	}
	direct, dynamic, invoked := f.callers(callee)
	for _, call := range slices.Concat(direct, dynamic, invoked) {
		if arg := argument(call.Common(), at); arg != nil {
			nodes = append(nodes, node{value: arg, in: call.Parent()})
		}
	}
	return nodes
}

// argument returns what a call passes for a parameter of its callee, the receiver being the
// first.
func argument(common *ssa.CallCommon, at int) ssa.Value {
	if common.IsInvoke() {
		if at == 0 {
			return common.Value
		}
		at--
	}
	if at < len(common.Args) {
		return common.Args[at]
	}
	return nil
}

// boxed returns the text of a value in an interface.
func (f *flow) boxed(n node, v *ssa.MakeInterface) step {
	t := v.X.Type()
	var nodes []node
	for _, name := range []string{"Error", "String"} {
		method := f.method(t, name)
		if method == nil {
			continue
		}
		if isOwn(method) && method.Signature.Params().Len() == 0 {
			nodes = append(nodes, f.returned(nil, method, 0, nil)...)
			if isString(t) {
				nodes = append(nodes, n.next(v.X))
			}
			return step{within: nodes}
		}
		if !isString(t) && !holdsText(t, 0) {
			return step{}
		}
	}
	if holdsText(t, 0) {
		return step{from: n.nexts(v.X)}
	}
	return step{}
}

// extracted follows one of several results.
func (f *flow) extracted(n node, v *ssa.Extract) step {
	switch tuple := v.Tuple.(type) {
	case *ssa.Call:
		if callee := tuple.Common().StaticCallee(); callee != nil && isWriterFirst(fullName(callee)) {
			return step{} // how much was written, and whether that failed
		}
		return f.result(n, tuple, v.Index)
	case *ssa.Lookup, *ssa.TypeAssert, *ssa.Next:
		return step{from: n.nexts(tuple)}
	case *ssa.UnOp: // a receive with ok
		return step{from: n.nexts(tuple)}
	case *ssa.Select:
		var nodes []node
		for _, state := range tuple.States {
			if state.Send == nil {
				nodes = append(nodes, elsewhere(f.sent[elementType(state.Chan.Type())])...)
			}
		}
		return step{from: nodes}
	}
	return step{problem: "this result cannot be followed"}
}

// result follows a result of a call.
func (f *flow) result(n node, v *ssa.Call, at int) step {
	common := v.Common()
	if builtin, is := common.Value.(*ssa.Builtin); is {
		switch builtin.Name() {
		case "append", "min", "max":
			return step{from: append(n.nexts(common.Args...), f.updates(n, v)...)}
		}
		return step{}
	}
	if common.IsInvoke() {
		if name := common.Method.Name(); (name == "Error" || name == "String") && len(common.Args) == 0 {
			return step{within: n.nexts(common.Value)}
		}
		var nodes []node
		for _, method := range f.implementations(common) {
			nodes = append(nodes, f.returned(v, method, at, n.at)...)
		}
		return step{from: nodes, within: f.callbacks(n, common)}
	}
	if callee := common.StaticCallee(); callee != nil {
		if isOwn(callee) {
			return step{from: append(f.returned(v, callee, at, n.at), f.updates(n, v)...)}
		}
		return f.foreign(n, v, callee, at)
	}
	functions, foreign := f.functionsOf(n.next(common.Value))
	var nodes []node
	for _, function := range functions {
		nodes = append(nodes, f.returned(v, function, at, n.at)...)
	}
	if len(functions) == 0 && !foreign {
		for _, function := range f.values[signature(common.Signature())] {
			if isOwn(function) {
				nodes = append(nodes, f.returned(v, function, at, n.at)...)
			}
		}
	}
	return step{from: nodes}
}

// returned are the results of a function at one place.
func (f *flow) returned(call ssa.CallInstruction, callee *ssa.Function, at int, parent *frame) []node {
	var entered *frame
	if call != nil {
		entered = f.enter(call, callee, parent)
	}
	var nodes []node
	for _, block := range callee.Blocks {
		if exit, is := block.Instrs[len(block.Instrs)-1].(*ssa.Return); is && at < len(exit.Results) {
			nodes = append(nodes, node{value: exit.Results[at], at: entered, in: callee})
		}
	}
	return nodes
}

// foreign follows the result of a function of another module.
func (f *flow) foreign(n node, v *ssa.Call, callee *ssa.Function, at int) step {
	name, args := fullName(callee), v.Common().Args
	switch treat(name) {
	case same:
		return step{from: n.nexts(args[0])}
	case contains:
		return step{within: append(n.nexts(args...), f.updates(n, v)...)}
	case says:
		said := n.next(args[0])
		return step{root: &root{format: nil, left: &said, in: v.Parent(), isError: true}}
	case formats, prints:
		return step{root: f.printed(n, v.Common(), name)}
	case data:
		return step{}
	}
	if receiver := typeName(receiverOf(callee)); receiver != nil && receiver.Pkg() != nil {
		switch receiver.Pkg().Path() + "." + receiver.Name() {
		case "strings.Builder", "bytes.Buffer":
			if holdsText(resultType(callee, at), 0) && !isErrorType(resultType(callee, at)) {
				return f.built(n, args[0])
			}
		}
	}
	pkg := packageOf(callee)
	if isString(resultType(callee, at)) && slices.Contains(textPackages, pkg) {
		return step{problem: "a text is built by " + name + ", which hack/messages/texts.go does not list; list what it does, or build the message with fmt.Sprintf"}
	}
	return step{within: f.callbacks(n, v.Common())}
}

func receiverOf(f *ssa.Function) types.Type {
	if receiver := f.Signature.Recv(); receiver != nil {
		return receiver.Type()
	}
	return types.Typ[types.Invalid]
}

func resultType(f *ssa.Function, at int) types.Type {
	if results := f.Signature.Results(); at < results.Len() {
		return results.At(at).Type()
	}
	return types.Typ[types.Invalid]
}

// printed is the text that a function like fmt.Sprintf writes.
func (f *flow) printed(n node, common *ssa.CallCommon, name string) *root {
	args := common.Args
	if isWriterFirst(name) {
		args = args[1:]
	}
	r := &root{in: n.function(), isError: name == "fmt.Errorf"}
	if treat(name) == formats {
		format := n.next(args[0])
		r.format, args = &format, args[1:]
	}
	r.args = n.nexts(args...)
	return r
}

func isWriterFirst(name string) bool {
	switch name {
	case "fmt.Fprintf", "fmt.Fprint", "fmt.Fprintln", "fmt.Appendf", "io.WriteString":
		return true
	}
	return false
}

// callbacks returns the errors that a call into another module may pass on: those of the
// functions and objects of ours that it is given or that its receiver was given, and the
// texts among its arguments.
func (f *flow) callbacks(n node, common *ssa.CallCommon) []node {
	args := n.nexts(common.Args...)
	receiver := types.Type(types.Typ[types.Invalid])
	if common.IsInvoke() {
		receiver = common.Value.Type()
	} else if callee := common.StaticCallee(); callee != nil && callee.Signature.Recv() != nil {
		receiver = receiverOf(callee)
		args = args[1:]
	}
	var nodes []node
	for _, arg := range args {
		if isString(arg.value.Type()) || isErrorType(arg.value.Type()) {
			nodes = append(nodes, arg)
		}
	}
	if owner := typeName(receiver); owner != nil && !f.own[owner.Pkg()] {
		args = append(args, elsewhere(f.given[owner])...)
	}
	for _, arg := range args {
		if _, is := arg.value.Type().Underlying().(*types.Signature); is {
			functions, _ := f.functionsOf(arg)
			for _, function := range functions {
				nodes = append(nodes, f.errorsOf(function)...)
			}
			continue
		}
		if made, is := arg.value.(*ssa.MakeInterface); is {
			nodes = append(nodes, f.errorsOfMethods(made)...)
		}
	}
	return nodes
}

// errorsOf are the errors that a function returns.
func (f *flow) errorsOf(function *ssa.Function) []node {
	results := function.Signature.Results()
	for i := range results.Len() {
		if isErrorType(results.At(i).Type()) {
			return f.returned(nil, function, i, nil)
		}
	}
	return nil
}

// errorsOfMethods are the errors that the methods return by which an object of ours
// fulfils an interface of another module.
func (f *flow) errorsOfMethods(made *ssa.MakeInterface) []node {
	wanted, is := made.Type().Underlying().(*types.Interface)
	if !is || isErrorType(made.Type()) {
		return nil
	}
	var nodes []node
	for i := range wanted.NumMethods() {
		if method := f.method(made.X.Type(), wanted.Method(i).Name()); isOwn(method) {
			nodes = append(nodes, f.errorsOf(method)...)
		}
	}
	return nodes
}

// functionsOf returns the functions that a value may be. foreign reports that it may be one
// of another module too.
func (f *flow) functionsOf(n node) (functions []*ssa.Function, foreign bool) {
	if f.resolving[n] {
		return nil, true
	}
	f.resolving[n] = true
	defer delete(f.resolving, n)
	seen := map[node]bool{}
	var visit func(node)
	visit = func(n node) {
		if seen[n] {
			return
		}
		seen[n] = true
		switch v := n.value.(type) {
		case *ssa.Function:
			if isOwn(v) {
				functions = append(functions, v)
			} else {
				foreign = true
			}
			return
		case *ssa.MakeClosure:
			functions = append(functions, v.Fn.(*ssa.Function))
			return
		case *ssa.Const:
			return
		}
		s := f.step(n)
		if len(s.from) == 0 {
			foreign = true
		}
		for _, next := range s.from {
			visit(next)
		}
	}
	visit(n)
	slices.SortFunc(functions, compare)
	return slices.Compact(functions), foreign
}

func compare(a, b *ssa.Function) int {
	switch {
	case a.String() < b.String():
		return -1
	case a.String() > b.String():
		return 1
	default:
		return int(a.Pos() - b.Pos())
	}
}

// yielded are the values of an iterator: what it passes to the function that it is given.
func (f *flow) yielded(iterator *ssa.Function) []node {
	if len(iterator.Params) != 1 || !isOwn(iterator) {
		return nil
	}
	var nodes []node
	for _, user := range *iterator.Params[0].Referrers() {
		if call, is := user.(*ssa.Call); is && call.Call.Value == iterator.Params[0] {
			for _, arg := range call.Call.Args {
				nodes = append(nodes, node{value: arg, in: iterator})
			}
		}
	}
	return nodes
}

// updates returns what is stored through an address, or put into a list or map, by way of
// this value: by its function, by functions that it is passed to and by closures.
func (f *flow) updates(n node, v ssa.Value) []node {
	var nodes []node
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if seen[v] || v.Referrers() == nil {
			return
		}
		seen[v] = true
		at := n.at
		if v.Parent() != n.value.Parent() {
			at = nil
		}
		for _, user := range *v.Referrers() {
			switch i := user.(type) {
			case *ssa.Store:
				if i.Addr == v {
					nodes = append(nodes, node{value: i.Val, at: at, in: i.Parent()})
				}
			case *ssa.MapUpdate:
				if i.Map == v {
					nodes = append(nodes, node{i.Key, at, i.Parent()}, node{i.Value, at, i.Parent()})
				}
			case *ssa.IndexAddr:
				if i.X == v {
					visit(i)
				}
			case *ssa.Slice:
				if i.X == v {
					visit(i)
				}
			case *ssa.MakeClosure:
				closure := i.Fn.(*ssa.Function)
				for at, binding := range i.Bindings {
					if binding == v {
						visit(closure.FreeVars[at])
					}
				}
			case ssa.CallInstruction:
				f.passed(i, v, visit, func(w ssa.Value) { nodes = append(nodes, node{w, at, i.Parent()}) })
			}
		}
	}
	visit(v)
	return nodes
}

// passed goes on with a value that is an argument of a call.
func (f *flow) passed(call ssa.CallInstruction, v ssa.Value, visit, copied func(ssa.Value)) {
	common := call.Common()
	if builtin, is := common.Value.(*ssa.Builtin); is {
		if builtin.Name() == "copy" && common.Args[0] == v {
			copied(common.Args[1])
		}
		return
	}
	var callees []*ssa.Function
	if common.IsInvoke() {
		callees = f.implementations(common)
	} else if callee := common.StaticCallee(); isOwn(callee) {
		callees = append(callees, callee)
	}
	for _, callee := range callees {
		for at, parameter := range callee.Params {
			if argument(common, at) == v {
				visit(parameter)
			}
		}
	}
}

// built is the text of a strings.Builder: all that is written to it.
func (f *flow) built(n node, builder ssa.Value) step {
	var nodes []node
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		if address, is := v.(*ssa.FieldAddr); is {
			for _, other := range f.fieldAddrs[fieldOf(address.X.Type(), address.Field)] {
				visit(other)
			}
		}
		if v.Referrers() == nil {
			return
		}
		for _, user := range *v.Referrers() {
			switch i := user.(type) {
			case *ssa.MakeInterface:
				visit(i)
			case *ssa.ChangeInterface:
				visit(i)
			case *ssa.MakeClosure:
				for at, binding := range i.Bindings {
					if binding == v {
						visit(i.Fn.(*ssa.Function).FreeVars[at])
					}
				}
			case ssa.CallInstruction:
				if call, is := i.(*ssa.Call); is && writes(call, v) {
					nodes = append(nodes, node{value: call, in: call.Parent()})
				} else if len(i.Common().Args) > 1 && i.Common().Args[0] == v && isOwnWrite(i) {
					nodes = append(nodes, node{value: i.Common().Args[1], in: i.Parent()})
				}
				f.passed(i, v, visit, func(ssa.Value) {})
			}
		}
	}
	visit(builder)
	return step{within: nodes}
}

// writes reports whether the call prints to the writer.
func writes(call *ssa.Call, writer ssa.Value) bool {
	callee := call.Common().StaticCallee()
	return callee != nil && isWriterFirst(fullName(callee)) && call.Common().Args[0] == writer
}

// isOwnWrite reports whether the call is of a method that writes a text to its receiver.
func isOwnWrite(call ssa.CallInstruction) bool {
	callee := call.Common().StaticCallee()
	if callee == nil {
		return false
	}
	name := callee.Name()
	return name == "WriteString" || name == "Write"
}

func isString(t types.Type) bool {
	basic, is := t.Underlying().(*types.Basic)
	return is && basic.Info()&types.IsString != 0
}

func isErrorType(t types.Type) bool {
	named, is := types.Unalias(t).(*types.Named)
	return is && named.Obj() == types.Universe.Lookup("error")
}

func implementsError(t types.Type) bool {
	return types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// holdsText reports whether a value of the type is text, holds text or returns it. Structs
// are not followed themselves: their fields are.
func holdsText(t types.Type, depth int) bool {
	if depth > 8 {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&types.IsString != 0 || u.Kind() == types.UntypedNil
	case *types.Interface:
		return u.NumMethods() == 0 || hasTextMethod(u) || u.IsComparable()
	case *types.Slice:
		if basic, is := u.Elem().Underlying().(*types.Basic); is && (basic.Kind() == types.Byte || basic.Kind() == types.Rune) {
			return true
		}
		return holdsText(u.Elem(), depth+1)
	case *types.Array:
		return holdsText(u.Elem(), depth+1)
	case *types.Map:
		return holdsText(u.Elem(), depth+1) || holdsText(u.Key(), depth+1)
	case *types.Chan:
		return holdsText(u.Elem(), depth+1)
	case *types.Pointer:
		return holdsText(u.Elem(), depth+1)
	case *types.Tuple:
		for i := range u.Len() {
			if holdsText(u.At(i).Type(), depth+1) {
				return true
			}
		}
		return false
	case *types.Signature:
		return true
	default:
		return false
	}
}

func hasTextMethod(i *types.Interface) bool {
	for m := range i.NumMethods() {
		if name := i.Method(m).Name(); name == "Error" || name == "String" {
			return true
		}
	}
	return false
}
