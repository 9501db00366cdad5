package main

import (
	"go/types"
)

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
