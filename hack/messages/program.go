package main

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/types/typeutil"
)

// program is the code of the product with indexes of where values go.
type program struct {
	// module is the path of the module that is read as source.
	module string
	fset   *token.FileSet
	prog   *ssa.Program
	// own are the packages that were read as source.
	own map[*types.Package]bool
	// functions with a body, sorted.
	functions []*ssa.Function
	// stored lists what is stored in each field of a struct, wherever that is.
	stored map[*types.Var][]where
	// fieldAddrs lists the addresses of each field that are taken.
	fieldAddrs map[*types.Var][]ssa.Value
	// globals lists what is stored in each package-level variable.
	globals map[*ssa.Global][]where
	// globalUses lists the instructions that use each package-level variable.
	globalUses map[*ssa.Global][]ssa.Instruction
	// sent lists what is sent through channels, by the type of their elements.
	sent map[string][]where
	// calls lists the direct calls of each function, closures the places where it becomes
	// a value.
	calls    map[*ssa.Function][]ssa.CallInstruction
	closures map[*ssa.Function][]*ssa.MakeClosure
	// isValue holds the functions that are used as values.
	isValue map[*ssa.Function]bool
	// dynamic lists the calls of function values, by signature; values lists the functions
	// that are used as values, by signature.
	dynamic, values typeutil.Map
	// invoked lists the calls of interface methods, by name.
	invoked map[string][]ssa.CallInstruction
	// named are the types of the own packages that become the value of an interface.
	named []types.Type
	// given lists what our code gives to objects of a type of another module, by calling a
	// method of it or by setting a field of it: that type may call it.
	given map[*types.TypeName][]where
	sets  typeutil.MethodSetCache
	// reached remembers what implementations returns, reaching what callers returns.
	reached  map[interfaceMethod][]*ssa.Function
	reaching map[*ssa.Function][]ssa.CallInstruction
}

// interfaceMethod is a method of an interface.
type interfaceMethod struct {
	of   types.Type
	name string
}

// where is a value and the function that has it.
type where struct {
	value ssa.Value
	in    *ssa.Function
}

func (p *program) index(all map[*ssa.Function]bool) {
	p.stored, p.fieldAddrs = map[*types.Var][]where{}, map[*types.Var][]ssa.Value{}
	p.globals, p.globalUses = map[*ssa.Global][]where{}, map[*ssa.Global][]ssa.Instruction{}
	p.sent = map[string][]where{}
	p.calls, p.closures = map[*ssa.Function][]ssa.CallInstruction{}, map[*ssa.Function][]*ssa.MakeClosure{}
	p.isValue = map[*ssa.Function]bool{}
	p.reached, p.reaching = map[interfaceMethod][]*ssa.Function{}, map[*ssa.Function][]ssa.CallInstruction{}
	p.invoked, p.given = map[string][]ssa.CallInstruction{}, map[*types.TypeName][]where{}
	for f := range all {
		if f.Blocks != nil {
			p.functions = append(p.functions, f)
		}
	}
	slices.SortFunc(p.functions, compare)
	for _, f := range p.functions {
		for _, block := range f.Blocks {
			for _, instruction := range block.Instrs {
				p.add(f, instruction)
			}
		}
	}
	for _, t := range p.prog.RuntimeTypes() {
		if name := typeName(t); name != nil && p.own[name.Pkg()] && !types.IsInterface(t) {
			p.named = append(p.named, t)
		}
	}
	slices.SortFunc(p.named, func(a, b types.Type) int { return strings.Compare(a.String(), b.String()) })
}

func (p *program) add(f *ssa.Function, instruction ssa.Instruction) {
	for _, operand := range instruction.Operands(nil) {
		switch v := (*operand).(type) {
		case *ssa.Global:
			p.globalUses[v] = append(p.globalUses[v], instruction)
		case *ssa.Function:
			if call, is := instruction.(ssa.CallInstruction); !is || call.Common().Value != v || slices.Contains(call.Common().Args, ssa.Value(v)) {
				p.addValue(v)
			}
		}
	}
	switch i := instruction.(type) {
	case *ssa.Store:
		p.addStore(f, i)
	case *ssa.FieldAddr:
		if field := fieldOf(i.X.Type(), i.Field); field != nil {
			p.fieldAddrs[field] = append(p.fieldAddrs[field], i)
		}
	case *ssa.MakeClosure:
		closure := i.Fn.(*ssa.Function)
		p.closures[closure] = append(p.closures[closure], i)
		p.addValue(closure)
	case *ssa.Send:
		p.addSent(i.Chan, where{i.X, f})
	case *ssa.Select:
		for _, state := range i.States {
			if state.Send != nil {
				p.addSent(state.Chan, where{state.Send, f})
			}
		}
	case ssa.CallInstruction:
		p.addCall(f, i)
	}
}

func (p *program) addStore(f *ssa.Function, store *ssa.Store) {
	switch address := store.Addr.(type) {
	case *ssa.Global:
		p.globals[address] = append(p.globals[address], where{store.Val, f})
	case *ssa.FieldAddr:
		field := fieldOf(address.X.Type(), address.Field)
		if field == nil {
			return
		}
		p.stored[field] = append(p.stored[field], where{store.Val, f})
		if owner := typeName(address.X.Type()); owner != nil && !p.own[owner.Pkg()] {
			p.given[owner] = append(p.given[owner], where{store.Val, f})
		}
	}
}

func (p *program) addSent(channel ssa.Value, sent where) {
	key := elementType(channel.Type())
	p.sent[key] = append(p.sent[key], sent)
}

func (p *program) addCall(f *ssa.Function, call ssa.CallInstruction) {
	common := call.Common()
	if common.IsInvoke() {
		p.invoked[common.Method.Name()] = append(p.invoked[common.Method.Name()], call)
		p.addGiven(f, common.Value.Type(), common.Args)
		return
	}
	if callee := common.StaticCallee(); callee != nil {
		p.calls[callee] = append(p.calls[callee], call)
		if callee.Blocks == nil && callee.Signature.Recv() != nil && len(common.Args) > 1 {
			p.addGiven(f, common.Args[0].Type(), common.Args[1:])
		}
		return
	}
	if _, is := common.Value.(*ssa.Builtin); !is {
		known, _ := p.dynamic.At(common.Signature()).([]ssa.CallInstruction)
		p.dynamic.Set(common.Signature(), append(known, call))
	}
}

func (p *program) addGiven(f *ssa.Function, receiver types.Type, args []ssa.Value) {
	owner := typeName(receiver)
	if owner == nil || p.own[owner.Pkg()] {
		return
	}
	for _, arg := range args {
		p.given[owner] = append(p.given[owner], where{arg, f})
	}
}

func (p *program) addValue(f *ssa.Function) {
	if !p.isValue[f] {
		p.isValue[f] = true
		known, _ := p.values.At(f.Signature).([]*ssa.Function)
		p.values.Set(f.Signature, append(known, f))
	}
}

// isOwn reports whether the function has a body that can be followed.
func isOwn(f *ssa.Function) bool { return f != nil && f.Blocks != nil }

// packageOf returns the path of the package that a function is written in.
func packageOf(f *ssa.Function) string {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if origin := f.Origin(); origin != nil {
		f = origin
	}
	if f.Pkg != nil {
		return f.Pkg.Pkg.Path()
	}
	if object := f.Object(); object != nil && object.Pkg() != nil {
		return object.Pkg().Path()
	}
	return ""
}

// fullName returns the name of a function with the path of its package: "strings.Join",
// "(*strings.Builder).WriteString".
func fullName(f *ssa.Function) string {
	if origin := f.Origin(); origin != nil {
		f = origin
	}
	if object, is := f.Object().(*types.Func); is {
		return object.FullName()
	}
	return f.String()
}

// method returns the method of a type by name, or nil.
func (p *program) method(t types.Type, name string) *ssa.Function {
	set := p.sets.MethodSet(t)
	for i := range set.Len() {
		if selection := set.At(i); selection.Obj().Name() == name && !types.IsInterface(t) {
			return p.prog.MethodValue(selection)
		}
	}
	return nil
}

// implementations returns the methods of our types that a call of an interface method may
// reach.
func (p *program) implementations(common *ssa.CallCommon) []*ssa.Function {
	wanted, is := common.Value.Type().Underlying().(*types.Interface)
	if !is {
		return nil
	}
	key := interfaceMethod{common.Value.Type(), common.Method.Name()}
	if methods, known := p.reached[key]; known {
		return methods
	}
	var methods []*ssa.Function
	for _, t := range p.named {
		if types.Implements(t, wanted) {
			if m := p.method(t, common.Method.Name()); isOwn(m) {
				methods = append(methods, m)
			}
		}
	}
	p.reached[key] = methods
	return methods
}

// callers returns the calls that may reach a function: those of its name, those of function
// values of its signature if it is used as a value, and those of interfaces that its
// receiver implements.
func (p *program) callers(f *ssa.Function) (direct, dynamic, invoked []ssa.CallInstruction) {
	direct = p.calls[f]
	if p.isValue[f] {
		dynamic, _ = p.dynamic.At(f.Signature).([]ssa.CallInstruction)
	}
	receiver := f.Signature.Recv()
	if receiver == nil {
		return direct, dynamic, nil
	}
	if invoked, known := p.reaching[f]; known {
		return direct, dynamic, invoked
	}
	for _, call := range p.invoked[f.Name()] {
		wanted, is := call.Common().Value.Type().Underlying().(*types.Interface)
		if is && types.Implements(receiver.Type(), wanted) {
			invoked = append(invoked, call)
		}
	}
	p.reaching[f] = invoked
	return direct, dynamic, invoked
}

// typeName returns the name of a type or of what it points to, nil when it has none.
func typeName(t types.Type) *types.TypeName {
	t = types.Unalias(t)
	if pointer, is := t.Underlying().(*types.Pointer); is {
		t = types.Unalias(pointer.Elem())
	}
	if named, is := t.(*types.Named); is {
		return named.Obj()
	}
	return nil
}

// fieldOf returns the field of a struct or of what a pointer points to.
func fieldOf(t types.Type, at int) *types.Var {
	t = t.Underlying()
	if pointer, is := t.(*types.Pointer); is {
		t = pointer.Elem().Underlying()
	}
	if s, is := t.(*types.Struct); is {
		return s.Field(at).Origin()
	}
	return nil
}

func elementType(t types.Type) string {
	if channel, is := t.Underlying().(*types.Chan); is {
		return types.TypeString(channel.Elem(), nil)
	}
	return ""
}
