"""Seeded random ONNX graphs whose every value is known while they grow.

A Graph starts with one to three inputs. Each step picks a value, a builder from graph_ops.py, and runs the builder's nodes
alone in ONNX Runtime on the real contents:

    value + builder --> nodes --> run alone --> accept: a new value with array and shape
                                          `--> reject: refused, too large, not finite, badly conditioned

so the graph is valid by construction, its numbers stay near 1, and no operator throws away the digits that rounding has left
(a difference in the result is then an error of the tool, not of arithmetic). `exact` marks values that do not depend on the
order of a summation: only those may feed operators that jump (Round, ArgMax, QuantizeLinear, comparisons).
"""
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as TP, helper as H, numpy_helper as NH

ort.set_default_logger_severity(4)
MAX_ELEMS = 60000
DTYPE = {np.dtype(k): v for k, v in (('f4', TP.FLOAT), ('f8', TP.DOUBLE), ('i8', TP.INT64), ('i4', TP.INT32), ('u1', TP.UINT8),
                                     ('i1', TP.INT8), ('?', TP.BOOL))}


class Rejected(Exception):
    """The step does not fit this value or is badly conditioned; another one is tried."""


def session(model, optimise=True, threads=1):
    so = ort.SessionOptions()
    so.intra_op_num_threads = threads
    so.inter_op_num_threads = 1
    so.log_severity_level = 4
    if not optimise:
        so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model, so, providers=['CPUExecutionProvider'])


class Value:
    def __init__(self, name, array, exact, const=False):
        self.name, self.array, self.exact, self.const = name, array, exact, const
        self.used = False

    shape = property(lambda s: s.array.shape)
    rank = property(lambda s: s.array.ndim)
    dtype = property(lambda s: s.array.dtype)
    is_float = property(lambda s: s.array.dtype.kind == 'f')


def rms(a):
    return float(np.sqrt(np.mean(np.square(a, dtype='f8')))) if a.size else 0.0


class Graph:
    def __init__(self, seed, opset=None):
        self.rng = np.random.default_rng(seed)
        self.opset = opset or int(self.rng.choice([7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 21, 22, 23]))
        lowest = 3 if self.opset < 9 else 4 if self.opset < 10 else 5 if self.opset == 10 else 6 if self.opset < 12 else \
            7 if self.opset < 15 else 8 if self.opset < 20 else 9 if self.opset < 21 else 10 if self.opset < 23 else 11
        self.ir = 3 if self.opset < 9 and self.chance(0.7) else lowest if self.chance(0.6) else max(lowest, 10)
        self.inputs, self.values, self.nodes, self.count = [], [], [], 0
        self.pending = []                    # nodes of the step under way
        self.inits, self.constants = {}, {}  # name -> array: initializers; contents of Constant nodes
        self.uneven_resize = False           # a scale gives a fraction of an element
        self.as_inputs = set()               # initializers that are listed as inputs, too
        self.steps = []                      # names of the accepted builders

    # ---- choices ----
    def chance(self, p):
        return bool(self.rng.random() < p)

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def int(self, lo, hi):
        """lo <= x <= hi"""
        return int(self.rng.integers(lo, max(hi, lo) + 1))

    # ---- pieces of the graph ----
    def fresh(self, base):
        self.count += 1
        return f'{base}_{self.count}'

    def input(self, shape, dtype='f4', array=None):
        if array is None:
            array = self.rng.standard_normal(shape).astype(dtype) if np.dtype(dtype).kind == 'f' else \
                self.rng.integers(0, 8, shape).astype(dtype)
        v = Value(f'in{len(self.inputs)}', array, True)
        self.inputs.append(v)
        self.values.append(v)
        return v

    def const(self, array, plain=False):
        """A constant operand in one of the ways a model can hold it; plain: contents must be knowable (shapes, axes)."""
        array = np.ascontiguousarray(array)
        how = self.rng.random()
        v = Value(self.fresh('w'), array, True, const=True)
        if how < 0.25:
            self.constants[v.name] = array
            node = H.make_node('Constant', [], [v.name], name='' if self.chance(0.3) else v.name + '_c', value=NH.from_array(array, v.name))
            self.pending.append((node, [v], []))
        else:
            self.inits[v.name] = array
            if self.ir == 3 or (how > 0.93 and not plain):
                self.as_inputs.add(v.name)
        return v

    def weight(self, *shape, scale=1.0):
        fan = max(int(np.prod(shape[1:])), 1)
        return self.const((self.rng.standard_normal(shape) * scale / np.sqrt(fan)).astype('f4'))

    def ints(self, values, dtype='i8'):
        return self.const(np.array(values, dtype), plain=True)

    def op(self, kind, ins, n_out=1, exact=None, captures=(), **attrs):
        """Run one node on real data and add it to the step. exact None: as exact as its inputs. captures: values that its
        subgraphs read."""
        ins = [i for i in ins]
        while ins and ins[-1] is None:
            ins.pop()
        names = [self.fresh(kind.lower()) for _ in range(n_out)]
        node = H.make_node(kind, [i.name if i else '' for i in ins], names,
                           name='' if self.chance(0.1) else f'{kind}_{self.count}', **{k: v for k, v in attrs.items() if v is not None})
        reads = [i for i in ins if i] + list(captures)
        arrays = run_node(node, {i.name: i.array for i in reads}, self.opset)
        exact = exact is not False and all(i.exact for i in reads)
        results = [Value(n, a, exact) for n, a in zip(names, arrays)]
        for r in results:
            check_result(r.array)
        self.pending.append((node, results, reads))
        return results[0] if len(results) == 1 else results

    def commit(self, what):
        for node, results, ins in self.pending:
            self.nodes.append(node)
            for i in ins:
                i.used = True
            self.values += [r for r in results if not r.const]
        self.pending = []
        self.steps.append(what)

    def rollback(self):
        for node, results, _ in self.pending:
            for r in results:
                self.constants.pop(r.name, None)
        self.pending = []

    # ---- the finished model ----
    def live_inits(self, nodes):
        read = reads_of(nodes)
        return {k: v for k, v in self.inits.items() if k in read}

    def model(self, outputs=None, dynamic=()):
        """outputs: values; dynamic: inputs whose dimensions are named in the file instead of fixed."""
        nodes = self.nodes
        if outputs is None:
            outputs = self.choose_outputs()
        else:
            nodes = ancestors(nodes, [o.name for o in outputs])
        inits = self.live_inits(nodes)
        read = reads_of(nodes) | {o.name for o in outputs}
        ins = []
        for v in self.inputs:
            if v.name not in read and self.inputs[0] is not v:
                continue
            dims = [f'{v.name}_d{k}' for k in range(v.rank)] if v.name in dynamic else list(v.shape)
            ins.append(H.make_tensor_value_info(v.name, DTYPE[v.dtype], dims))
        ins += [H.make_tensor_value_info(k, DTYPE[inits[k].dtype], inits[k].shape) for k in sorted(self.as_inputs) if k in inits]
        outs = [H.make_tensor_value_info(o.name, DTYPE[o.dtype], None if dynamic or self.vague else o.shape) for o in outputs]
        known = [] if dynamic else [v for v in self.values if v.name in self.stated and any(v.name in n.output for n in nodes)]
        infos = [H.make_tensor_value_info(v.name, DTYPE[v.dtype], v.shape) for v in known if v not in outputs]
        g = H.make_graph(nodes, 'random', ins, outs, [NH.from_array(a, k) for k, a in inits.items()], value_info=infos)
        m = H.make_model(g, opset_imports=[H.make_opsetid('', self.opset)], ir_version=self.ir, producer_name='random_graphs')
        return m

    vague = False      # outputs without a shape in the file
    stated = frozenset()  # names of values whose shape the file states

    def choose_outputs(self):
        made = {o for n in self.nodes for o in n.output if o}
        values = [v for v in self.values if v.name in made]
        read = reads_of(self.nodes)
        outs = [v for v in values if v.name not in read]
        inner = [v for v in values if v.name in read]
        for v in inner:
            if self.rng.random() < 0.06:
                outs.append(v)
        if self.chance(0.5):
            self.rng.shuffle(outs)
        return outs

    def feeds(self, model):
        names = {i.name for i in model.graph.input}
        return {v.name: v.array for v in self.inputs if v.name in names}


def reads_of(nodes):
    """Names that the nodes and their subgraphs read."""
    names = {i for n in nodes for i in n.input if i}
    for n in nodes:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                names |= reads_of(a.g.node)
    return names


def ancestors(nodes, names):
    want, keep = set(names), []
    for n in reversed(nodes):
        if want & {o for o in n.output if o}:
            keep.append(n)
            want |= reads_of([n])
    return keep[::-1]


def run_node(node, arrays, opset):
    ins = [H.make_tensor_value_info(k, DTYPE[a.dtype], a.shape) for k, a in arrays.items()]
    outs = [onnx.ValueInfoProto(name=o) for o in node.output if o]
    g = H.make_graph([node], 'one', ins, outs)
    m = H.make_model(g, opset_imports=[H.make_opsetid('', opset)], ir_version=8 if opset < 21 else 10)
    const = [k for k in arrays if k.startswith('w_')]  # some kernels want these constant
    for k in const:
        m.graph.initializer.append(NH.from_array(arrays[k], k))
    try:
        s = session(m.SerializeToString(), optimise=False)
        return s.run(None, {k: v for k, v in arrays.items() if k not in const})
    except Exception as e:
        raise Rejected(f'{node.op_type}: {str(e).splitlines()[0][:200]}') from None


def check_result(a):
    if a.dtype not in DTYPE:
        raise Rejected(f'type {a.dtype}')
    if a.size == 0 or a.size > MAX_ELEMS:
        raise Rejected(f'{a.size} elements')
    if a.dtype.kind == 'f':
        if not np.isfinite(a).all():
            raise Rejected('not finite')
        top = float(np.abs(a).max())
        if top > 1e3 or 0 < top < 1e-3:
            raise Rejected(f'largest value {top:g}')


def grow(seed, steps=None, opset=None):
    """The graph of a seed. The same arguments give the same graph."""
    import graph_ops
    g = Graph(seed, opset)
    graph_ops.start(g)
    want = steps or g.int(2, 22)
    for _ in range(want * 6):
        if len(g.steps) >= want:
            break
        name, build = graph_ops.choose(g)
        try:
            build(g)
            g.commit(name)
        except Rejected as e:
            g.rollback()
            g.rejected = getattr(g, 'rejected', {})
            g.rejected[name] = str(e)
    g.vague = g.chance(0.1)
    if g.chance(0.3):
        g.stated = {v.name for v in g.values if g.chance(0.5)}
    return g
