package main

import (
	"go/token"

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

// step describes the origin of the text of a node. No field is set for data: the program did
// not write it.
type step struct {
	// from: the text is that of one of these.
	from []node
	// within: the text contains that of these. If one of the two is an error, that is a message
	// of its own.
	within []node
	// inside: the text contains that of these, which are no messages of their own.
	inside []node
	// root: the text begins here.
	root *root
	// problem is the reason why the value cannot be followed.
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
