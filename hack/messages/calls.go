package main

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

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
		if owner := typeName(common.Value.Type()); len(nodes) == 0 && owner != nil && f.own[owner.Pkg()] {
			return step{problem: "no implementation of method " + owner.Name() + "." + common.Method.Name() + " is found, so its text is not known"}
		}
		passed := f.callbacks(n, common)
		passed.from = nodes
		return passed
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
		values, _ := f.values.At(common.Signature()).([]*ssa.Function)
		for _, function := range values {
			if isOwn(function) {
				nodes = append(nodes, f.returned(v, function, at, n.at)...)
			}
		}
		if len(nodes) == 0 {
			return step{problem: "no function of this signature is found, so the text that it returns is not known"}
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
	case newError:
		text := n.next(args[0])
		return step{root: &root{left: &text, in: v.Parent(), isError: true}}
	case formats, prints:
		return step{root: f.printed(n, v.Common(), name)}
	case data:
		return step{}
	}
	if isBuilder(receiverOf(callee)) && holdsText(resultType(callee, at), 0) && !isErrorType(resultType(callee, at)) {
		return f.built(args[0])
	}
	pkg := packageOf(callee)
	if isString(resultType(callee, at)) && slices.Contains(textPackages, pkg) {
		return step{problem: "a text is built by " + name + ", which hack/messages/texts.go does not list; list what it does, or build the message with fmt.Sprintf"}
	}
	return f.callbacks(n, v.Common())
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
func (f *flow) callbacks(n node, common *ssa.CallCommon) step {
	args := n.nexts(common.Args...)
	receiver := types.Type(types.Typ[types.Invalid])
	if common.IsInvoke() {
		receiver = common.Value.Type()
	} else if callee := common.StaticCallee(); callee != nil && callee.Signature.Recv() != nil {
		receiver = receiverOf(callee)
		args = args[1:]
	}
	var nodes, texts []node
	for _, arg := range args {
		switch {
		case isErrorType(arg.value.Type()):
			nodes = append(nodes, arg)
		case isString(arg.value.Type()):
			texts = append(texts, arg)
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
		if boxed, is := arg.value.(*ssa.MakeInterface); is {
			nodes = append(nodes, f.errorsOfMethods(boxed)...)
		}
	}
	return step{within: nodes, inside: texts}
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
func (f *flow) errorsOfMethods(boxed *ssa.MakeInterface) []node {
	wanted, is := boxed.Type().Underlying().(*types.Interface)
	if !is || isErrorType(boxed.Type()) {
		return nil
	}
	var nodes []node
	for i := range wanted.NumMethods() {
		if method := f.method(boxed.X.Type(), wanted.Method(i).Name()); isOwn(method) {
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
