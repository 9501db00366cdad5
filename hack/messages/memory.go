package main

import (
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

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
	if len(nodes) == 0 && isEmbedded(v) {
		return step{problem: "nothing in the code sets the variable " + v.Name() + ", so its text is not known; write the text as a constant"}
	}
	return step{from: nodes}
}

// isEmbedded reports whether a variable may have the text of a file: its package can embed
// files. Of other variables that nothing sets, the linker does, as of the program's version.
func isEmbedded(v *ssa.Global) bool {
	return holdsText(v.Type(), 0) && slices.ContainsFunc(v.Pkg.Pkg.Imports(), func(pkg *types.Package) bool { return pkg.Path() == "embed" })
}

// bindings returns what a closure was given for a variable of the function around it.
func (f *flow) bindings(v *ssa.FreeVar) []node {
	closure := v.Parent()
	at := slices.Index(closure.FreeVars, v)
	var nodes []node
	for _, closed := range f.closures[closure] {
		nodes = append(nodes, node{value: closed.Bindings[at], in: closed.Parent()})
	}
	return append(nodes, f.updates(node{value: v}, v)...)
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

// passed follows a value into the functions that it is an argument of.
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

// built is the text of a strings.Builder: all that is written to it. Its pieces are listed on
// their own, since their order is not followed.
func (f *flow) built(builder ssa.Value) step {
	var pieces []node
	problem, isWritten := "", false
	seen := map[ssa.Value]bool{}
	var visit func(v ssa.Value)
	visit = func(v ssa.Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, same := range f.sameBuilder(v) {
			visit(same)
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
				piece, unknown := written(i, v)
				if piece != nil {
					pieces = append(pieces, node{value: piece, in: i.Parent()})
				}
				isWritten = isWritten || piece != nil || isLetterWrite(i)
				if unknown != "" {
					problem = "a text is built by " + unknown + ", which is not followed; write to the builder with fmt.Fprintf or WriteString"
				}
				f.passed(i, v, visit, func(ssa.Value) {})
			}
		}
	}
	visit(builder)
	if !isWritten && problem == "" {
		problem = "nothing is found that writes to this builder; build the message with fmt.Sprintf"
	}
	return step{within: pieces, problem: problem}
}

// sameBuilder are other values that are the same builder.
func (f *flow) sameBuilder(v ssa.Value) []ssa.Value {
	var values []ssa.Value
	switch v := v.(type) {
	case *ssa.FieldAddr:
		return f.fieldAddrs[fieldOf(v.X.Type(), v.Field)]
	case *ssa.Parameter:
		for _, n := range f.arguments(node{value: v}, v) {
			values = append(values, n.value)
		}
	case *ssa.FreeVar:
		for _, n := range f.bindings(v) {
			values = append(values, n.value)
		}
	}
	return values
}

// written returns what a call writes to a builder, or the name of what may write to it.
func written(call ssa.CallInstruction, builder ssa.Value) (piece ssa.Value, unknown string) {
	callee, args := call.Common().StaticCallee(), call.Common().Args
	if callee == nil || isOwn(callee) {
		return nil, ""
	}
	name := fullName(callee)
	switch {
	case isBuilder(receiverOf(callee)):
		if callee.Name() == "Write" || callee.Name() == "WriteString" {
			return args[1], ""
		}
		return nil, ""
	case isWriterFirst(name) && args[0] == builder:
		piece, _ = call.(*ssa.Call)
		return piece, ""
	default:
		return nil, name
	}
}

// isLetterWrite reports whether a call writes a single character to a builder: that is data.
func isLetterWrite(call ssa.CallInstruction) bool {
	callee := call.Common().StaticCallee()
	return callee != nil && isBuilder(receiverOf(callee)) && (callee.Name() == "WriteByte" || callee.Name() == "WriteRune")
}

func isBuilder(t types.Type) bool {
	name := typeName(t)
	if name == nil || name.Pkg() == nil {
		return false
	}
	full := name.Pkg().Path() + "." + name.Name()
	return full == "strings.Builder" || full == "bytes.Buffer"
}
