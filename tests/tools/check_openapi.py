#!/usr/bin/env python3
"""Check the contract, api/openapi.yaml.

check_openapi.py                 the document itself, its examples, the tables it repeats
check_openapi.py FILE...         also recorded exchanges, one JSON object a line:
                                 {"method","path","status","content_type","body"}
check_openapi.py --corpus        print requests made from the contract, valid and wrong ones, one JSON
                                 object a line: {"method","path","headers":["Name: value"],"body"}

Exit status 1 where something is wrong. Needs PyYAML and jsonschema 4.
"""
import collections
import copy
import json
import os
import random
import re
import sys
import urllib.parse

import jsonschema
import yaml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
METHODS = ('get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace')
PROBLEM = 'application/problem+json'
CORPUS_MOST = 2000


def read(*parts):
  with open(os.path.join(ROOT, *parts), encoding='utf-8') as file:
    return file.read()


class Faults:
  """What is wrong, each with its place."""

  def __init__(self):
    self.count = 0

  def add(self, place, text):
    self.count += 1
    if self.count <= 100:
      print(f'check_openapi: {place}: {text}', file=sys.stderr)


class UniqueKeys(yaml.SafeLoader):
  """YAML lets a later key win over an equal one before it; here that is a mistake."""

  def construct_mapping(self, node, deep=False):
    keys = [self.construct_object(key, deep=True) for key, _ in node.value]
    doubled = [key for key, count in collections.Counter(keys).items() if count > 1]
    if doubled:
      raise yaml.constructor.ConstructorError(
          None, None, f'key given twice: {doubled[0]}', node.start_mark)
    return super().construct_mapping(node, deep)


class Contract:
  def __init__(self):
    self.spec = yaml.load(read('api', 'openapi.yaml'), UniqueKeys)
    self.validators = {}
    self.statuses = {
        code: int(status) for code, status in re.findall(
            r'^DG_ERROR\(\d+, \w+, "(\w+)", (\d+)', read('api', 'errors.def'), re.M)
    }

  def resolve(self, node):
    while isinstance(node, dict) and '$ref' in node:
      node = self.follow(node['$ref'])
    return node

  def follow(self, ref):
    if not ref.startswith('#/'):
      raise KeyError(f'{ref} is not in this document')
    node = self.spec
    for part in ref[2:].split('/'):
      node = node[urllib.parse.unquote(part).replace('~1', '/').replace('~0', '~')]
    return node

  def faults_of(self, schema, document):
    """What of a document does not fit a schema, as texts."""
    name = json.dumps(schema, sort_keys=True)
    if name not in self.validators:
      # References are into the components, so these go with the schema.
      whole = {'allOf': [schema], 'components': self.spec['components']}
      self.validators[name] = jsonschema.Draft202012Validator(whole)
    errors = sorted(self.validators[name].iter_errors(document), key=lambda e: list(e.path))
    return [describe(jsonschema.exceptions.best_match([e])) for e in errors[:3]]

  def operations(self):
    for path, item in self.spec['paths'].items():
      for method in METHODS:
        if method in item:
          yield path, method, item[method]

  def find(self, method, path):
    """The path's template and operation for a request; a literal beats a parameter."""
    segments = [urllib.parse.unquote(s) for s in path.split('?')[0].split('/')]
    best, best_literals = None, -1
    for template in self.spec['paths']:
      parts = template.split('/')
      if len(parts) != len(segments):
        continue
      pairs = list(zip(parts, segments))
      if any(s == '' if p.startswith('{') else p != s for p, s in pairs):
        continue
      literals = sum(not p.startswith('{') for p in parts)
      if literals > best_literals:
        best, best_literals = template, literals
    operation = self.spec['paths'][best].get(method.lower()) if best else None
    return best, operation


def describe(error):
  place = ''.join(f'[{p}]' if isinstance(p, int) else f'.{p}' for p in error.absolute_path)
  return f'{place or "document"}: {error.message[:300]}'


# ---- the document itself


def walk(node, place='#'):
  yield place, node
  items = node.items() if isinstance(node, dict) else (
      enumerate(node) if isinstance(node, list) else ())
  for key, value in items:
    yield from walk(value, f'{place}/{key}')


def check_references(contract, faults):
  for place, node in walk(contract.spec):
    if isinstance(node, dict) and isinstance(node.get('$ref'), str):
      try:
        contract.follow(node['$ref'])
      except (KeyError, TypeError):
        faults.add(place, f'{node["$ref"]} leads nowhere')


def check_used(contract, faults):
  """Every component is used by something."""
  used = {node['$ref'] for _, node in walk(contract.spec)
          if isinstance(node, dict) and isinstance(node.get('$ref'), str)}
  for kind, components in contract.spec['components'].items():
    if kind == 'securitySchemes':
      used |= {f'#/components/{kind}/{name}' for _, _, operation in contract.operations()
               for need in operation.get('security', contract.spec['security']) for name in need}
    for name in components:
      if f'#/components/{kind}/{name}' not in used:
        faults.add(f'#/components/{kind}/{name}', 'is used by nothing')


def check_operation(contract, path, method, operation, seen, faults):
  place = f'{method.upper()} {path}'
  name = operation.get('operationId')
  if not name or name in seen:
    faults.add(place, f'operationId {name} is missing or given twice')
  seen.add(name)
  parameters = [contract.resolve(p) for p in operation.get('parameters', [])]
  wanted = set(re.findall(r'{(\w+)}', path))
  given = {p['name'] for p in parameters if p['in'] == 'path'}
  if wanted != given:
    faults.add(place, f'path parameters are {sorted(given)}, the path has {sorted(wanted)}')
  for parameter in parameters:
    if parameter['in'] == 'path' and not parameter.get('required'):
      faults.add(place, f'path parameter {parameter["name"]} must be required')
  responses = operation.get('responses', {})
  if not any(status.startswith('2') for status in responses):
    faults.add(place, 'has no success')
  for status, response in responses.items():
    response = contract.resolve(response)
    if not re.fullmatch('[1-5][0-9][0-9]', status):
      faults.add(place, f'status {status} is none')
    if not response.get('description'):
      faults.add(f'{place} {status}', 'has no description')
    if int(status) >= 400 and list(response.get('content', {})) != [PROBLEM]:
      faults.add(f'{place} {status}', 'is no problem document')
    if int(status) >= 400 and int(status) not in contract.statuses.values():
      faults.add(f'{place} {status}', 'no error of errors.def has this status')


def schemas_of(contract):
  for name, schema in contract.spec['components']['schemas'].items():
    yield f'#/components/schemas/{name}', schema
  for place, node in walk(contract.spec['paths'], '#/paths'):
    if isinstance(node, dict) and isinstance(node.get('schema'), dict):
      yield f'{place}/schema', node['schema']


def check_complete(place, schema, faults):
  """What a reply describes it always has, but for two members of problems."""
  asked = place.split('/schemas/')[1].split('/')[0]
  missing = set(schema['properties']) - set(schema.get('required', []))
  if asked == 'Problem':
    missing -= {'origin', 'native_code'}
  if missing and not asked.endswith('Request'):
    faults.add(place, f'does not require {", ".join(sorted(missing))}')


def check_schemas(contract, faults):
  count = 0
  for place, schema in schemas_of(contract):
    count += 1
    try:
      jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
      faults.add(place, f'is no JSON Schema: {describe(error)}')
    for inner, node in walk(schema, place):
      if isinstance(node, dict) and isinstance(node.get('required'), list):
        for name in node['required']:
          if name not in node.get('properties', {}):
            faults.add(inner, f'requires {name}, which it does not describe')
      if isinstance(node, dict) and isinstance(node.get('properties'), dict) and 'schemas/' in place:
        check_complete(inner, node, faults)
      if isinstance(node, dict) and node.get('additionalProperties') is False:
        faults.add(inner, 'must stay open for members of later versions')
  return count


def check_examples(contract, faults):
  count = 0
  for place, node in walk(contract.spec):
    if not isinstance(node, dict):
      continue
    given = []
    if isinstance(node.get('schema'), dict):
      given = [(name, e['value']) for name, e in node.get('examples', {}).items()]
      given += [('example', node['example'])] if 'example' in node else []
      schema = node['schema']
    elif '/schemas/' in place and isinstance(node.get('examples'), list):
      given, schema = list(enumerate(node['examples'])), node
    elif '/schemas/' in place and isinstance(node.get('type'), (str, list)) and 'example' in node:
      given, schema = [('example', node['example'])], node
    for name, value in given:
      count += 1
      if is_parameter(node) and schema_takes_number(contract, schema) and str(value).isdigit():
        value = int(value)
      for fault in contract.faults_of(schema, value):
        faults.add(f'{place}, example {name}', fault)
  return count


def is_parameter(node):
  return node.get('in') in ('path', 'query', 'header')


def schema_takes_number(contract, schema):
  return contract.resolve(schema).get('type') == 'integer'


def check_example_files(contract, faults):
  named = set()
  for name, schema in contract.spec['components']['schemas'].items():
    for file in schema.get('x-example-files', []):
      named.add(file)
      document = json.loads(read('api', 'examples', file))
      for fault in contract.faults_of({'$ref': f'#/components/schemas/{name}'}, document):
        faults.add(f'api/examples/{file} as {name}', fault)
  present = {f for f in os.listdir(os.path.join(ROOT, 'api', 'examples')) if f.endswith('.json')}
  for file in sorted(present ^ named):
    faults.add(f'api/examples/{file}', 'is named by no schema, or is not there')
  for place, node in walk(contract.spec):
    if isinstance(node, dict) and isinstance(node.get('examples'), dict) and not is_parameter(node):
      for name, example in node['examples'].items():
        if example['value'] != json.loads(read('api', 'examples', name + '.json')):
          faults.add(f'{place}/examples/{name}', f'is not api/examples/{name}.json')
  return len(present)


def check_tables(contract, faults):
  """Words that the contract repeats from the tables of the code."""
  schemas = contract.spec['components']['schemas']
  dtypes = re.findall(r'^DG_DTYPE\(\d+, \w+, "\w+", (\w+), "(\w+)"', read('api', 'dtypes.def'), re.M)
  variants = re.findall(
      r'^DG_VARIANT\(\w+, \d+, \S+ "\w+", "(\w+)"', read('api', 'variants.def'), re.M)
  tables = [('ErrorCode', schemas['ErrorCode']['enum'], list(contract.statuses)),
            ('DtypeName', schemas['DtypeName']['enum'], [name for _, name in dtypes]),
            ('Variant', schemas['Variant']['enum'], variants)]
  for choice in schemas['Dtype']['anyOf']:
    (family, schema), = choice['properties'].items()
    tables.append((family, schema['enum'], [n for f, n in dtypes if f == family.upper()]))
  for name, is_, expected in tables:
    for word in sorted(set(is_) ^ set(expected)):
      faults.add(name, f'{word} is in one of contract and table only')
    if len(is_) != len(set(is_)) or not expected:
      faults.add(name, 'has a word twice, or none')


def check_document(contract, faults):
  if not str(contract.spec.get('openapi', '')).startswith('3.1.'):
    faults.add('openapi', 'expected version 3.1')
  check_references(contract, faults)
  if faults.count:
    return
  check_used(contract, faults)
  seen = set()
  for path, method, operation in contract.operations():
    check_operation(contract, path, method, operation, seen, faults)
  schemas = check_schemas(contract, faults)
  examples = check_examples(contract, faults)
  files = check_example_files(contract, faults)
  check_tables(contract, faults)
  print(f'contract: {len(contract.spec["paths"])} paths, {len(seen)} operations, {schemas} schemas, '
        f'{examples} examples inline, {files} in files, {len(contract.statuses)} error codes')


# ---- recorded exchanges


def refuse_constant(name):
  raise ValueError(f'{name} is none of JSON')


def refuse_doubled(pairs):
  if len({name for name, _ in pairs}) != len(pairs):
    raise ValueError('a member is given twice')
  return dict(pairs)


def parse(place, body, faults):
  try:
    return json.loads(body, parse_constant=refuse_constant, object_pairs_hook=refuse_doubled), True
  except ValueError as error:
    faults.add(place, f'the body is no JSON: {error}')
    return None, False


def check_problem(contract, place, line, faults):
  if line['content_type'].split(';')[0] != PROBLEM:
    faults.add(place, f'the type is {line["content_type"]}, expected {PROBLEM}')
    return
  problem, parsed = parse(place, line['body'], faults)
  if not parsed:
    return
  found = contract.faults_of({'$ref': '#/components/schemas/Problem'}, problem)
  for fault in found:
    faults.add(place, fault)
  if found:
    return
  if problem['status'] != line['status']:
    faults.add(place, f'the problem says {problem["status"]}')
  if contract.statuses[problem['code']] != line['status']:
    faults.add(place, f'{problem["code"]} has status {contract.statuses[problem["code"]]}')


def check_events(contract, place, media, body, faults):
  """Fields of server-sent events; an event whose blank line has not come yet does not count."""
  ended = False
  for block in body.split('\n\n')[:-1]:
    fields = [f.partition(': ') for f in block.split('\n') if f and not f.startswith(':')]
    names = [value for name, _, value in fields if name == 'event']
    data = '\n'.join(value for name, _, value in fields if name == 'data')
    if not fields:
      continue
    if names not in (['progress'], ['end']) or ended:
      faults.add(place, f'event {names} is unknown, or comes after the end')
      continue
    ended = names == ['end']
    job, parsed = parse(place, data, faults)
    for fault in contract.faults_of(media['x-event-data'], job) if parsed else ():
      faults.add(place, fault)


def check_success(contract, place, line, response, faults):
  content = contract.resolve(response).get('content')
  kind = line['content_type'].split(';')[0].strip()
  if not content or line['method'] == 'HEAD':
    if line['body']:
      faults.add(place, 'has a body')
    return
  if kind not in content:
    faults.add(place, f'the type is {kind}, expected {", ".join(content)}')
  elif kind == 'text/event-stream':
    check_events(contract, place, content[kind], line['body'], faults)
  elif kind == 'application/json':
    document, parsed = parse(place, line['body'], faults)
    for fault in contract.faults_of(content[kind]['schema'], document) if parsed else ():
      faults.add(place, fault)


def check_exchange(contract, number, line, faults, counts):
  place = f'exchange {number}: {line["method"][:20]} {line["path"][:80]} -> {line["status"]}'
  asked = 'GET' if line['method'] == 'HEAD' else line['method']
  _, operation = contract.find(asked, line['path'])
  status = line['status']
  counts[operation['operationId'] if operation else 'nothing of the contract', status] += 1
  if operation and str(status) not in operation['responses']:
    faults.add(place, f'{operation["operationId"]} does not give this status: {line["body"][:200]}')
  elif status >= 400:
    if line['method'] != 'HEAD':
      check_problem(contract, place, line, faults)
  elif not operation:
    faults.add(place, 'is a success that the contract does not know')
  else:
    check_success(contract, place, line, operation['responses'][str(status)], faults)


def check_exchanges(contract, file, faults):
  counts = collections.Counter()
  with open(file, encoding='utf-8') as lines:
    for number, text in enumerate(lines, 1):
      try:
        line = json.loads(text)
        for name, kind in (('method', str), ('path', str), ('status', int), ('content_type', str),
                           ('body', str)):
          if not isinstance(line.get(name), kind):
            raise ValueError(f'{name} is missing')
      except ValueError as error:
        faults.add(f'{file}:{number}', f'is no exchange: {error}')
        continue
      check_exchange(contract, number, line, faults, counts)
  print(f'exchanges: {sum(counts.values())} of {file}')
  by_operation = collections.defaultdict(list)
  for (name, status), count in sorted(counts.items(), key=str):
    by_operation[name].append(f'{status} x {count}')
  for name, told in by_operation.items():
    print(f'  {name}: {", ".join(told)}')
  for name in sorted({o['operationId'] for _, _, o in contract.operations()} - set(by_operation)):
    print(f'  {name}: never asked')


# ---- requests made from the contract

SEGMENTS = [
    '1', '65535', '65536', '99999999999999999999', '-1', '0x0', '1e3', '00', 'cpu', 'CPU', 'cpu%20',
    '%20cpu', 'flex', 'cuda:0', 'cuda:65536', 'cuda:-1', 'cuda:', 'vulkan', 'vulkan:discrete:0',
    'vulkan:sideways:0', 'libtorch:mps', 'capture:0', 'remote:https%3A%2F%2Fh%3A1%230',
    'https%3A%2F%2Fh%3A1%230', 'autodiff(cpu)', 'autodiff(autodiff(cpu))', 'autodiff(cpu',
    'autodiff(cpu,balanced)', 'null', '%2e%2e', '%2F', '%', '%zz', '%0', '%00', '%0a', '%7f', '%FF',
    '%C3%28', '%E2%98%83', '%25', '%2525', '+', '*', ';', '&', "'", '~', 'a' * 300, 'a' * 3000,
    'a' * 9000, '%41' * 200, '', 'default', '..;', 'cpu;v=1', '{device}'
]
PATHS = [
    '/', '//', '/v1', '/v1/', '/v1/nothing', '/v2/devices', '/V1/devices', '/v1/devices/',
    '/v1//devices', '/v1/devices/cpu/', '/v1/devices/cpu/throughput/more', '/v1/jobs', '/v1/ids',
    '/v1/ids/1', '/v1/ids/1/2/3', '/metrics', '/healthz/', '/healthz?x', '/%76%31/devices', '/v1%2Fdevices',
    '/a/b/c/d/e/f/g/h', '/a/b/c/d/e/f/g/h/i/j', '/%', '/%g0', '/v1/devices?', '/v1/devices?&&&',
    '/v1/devices?=', '/v1/devices?state', '/v1/devices?state=ok&state=lost', '/v1/devices?state=%',
    '/v1/devices?state=%00', '/v1/devices?backend=', '/v1/devices?backend=cpu%00', '/' + 'x' * 9000,
    '/v1/devices?' + '&'.join(f'p{i}=1' for i in range(30)), '/v1/devices?state=' + 'o' * 5000
]
QUERIES = ['?', '?access=', '?access=up', '?access=read&access=up', '?access=READ', '?access=%',
           '?access=%FF', '?access=' + 'r' * 2000, '?access=copy%00', '?other=1', '?' + '&' * 100]
TYPES = ['', 'text/xml', 'application/jsonx', 'application/json; charset=utf-8', 'APPLICATION/JSON',
         'application/json;', 'multipart/form-data', 'json', 'application/*', 'x' * 2000, ';', ',']
HEADERS = [
    'Accept: text/html', 'Accept: */*', 'Accept: application/*', 'Accept: application/json;q=0',
    'Accept: ;;;', 'Accept: ' + 'a/b, ' * 300, 'If-None-Match: *', 'If-None-Match: "', 'Prefer: wait=-1',
    'Prefer: wait=', 'Prefer: wait=99999999999999999999, respond-async', 'Prefer: ,;,respond-async',
    'Authorization: Bearer', 'Authorization: Basic YTpi', 'Range: bytes=0-0', 'Host: evil.example',
    'Host: localhost:99999', 'Host: [', 'Origin: null', 'Origin: https://evil.example',
    'X-Long: ' + 'x' * 30000, 'Expect: nonsense', 'Content-Encoding: gzip'
]
BODIES = [
    '', ' ', '{', '[', ']', '}', 'null', '0', '-', '"', '"x"', 'true', 'nul', '{}', '[]', '[{}]', '[[]]',
    '[null]', '{"a":1,"a":2}', '{"keys":[],"keys":[]}', '{"keys":[]} x', '{"keys":[],}', '{keys:[]}',
    "{'keys':[]}", '{"keys":[NaN]}', '{"keys":[1e999]}', '{"keys":[-0]}', '{"keys":[1' + '0' * 400 + ']}',
    '{"keys":["\\u0000"]}', '{"keys":["\\ud800"]}', '{"keys":["\\x"]}', '{"keys":["\t"]}', '/**/{}',
    '\ufeff{"keys":[]}', '{"keys":["' + 'k' * 100000 + '"]}', '"' + 'x' * 200000 + '"', '[' * 31 + ']' * 31,
    '[' * 33 + ']' * 33, '[' * 5000, '{"a":' * 40 + '1' + '}' * 40, '{"a":' * 5000, '["\\"' + '[' * 100 + '"]',
    '{"\\u0000":1}', '{"' + 'n' * 5000 + '":1}', '[' + ','.join(['0'] * 5000) + ']', '\u2603', '{"keys":"\u2603"}'
]
VALUES = [
    None, True, False, 0, 1, -1, 1.5, -0.0, 1e308, 2**31, 2**63 - 1, 2**63, 10**40, '', 'x', '\u2603',
    'x' * 2000, [], {}, [[]], {'a': {}}, [None]
]


def paths_in(document, at=()):
  yield at
  items = document.items() if isinstance(document, dict) else (
      enumerate(document) if isinstance(document, list) else ())
  for key, value in items:
    yield from paths_in(value, at + (key,))


def changed(document, at, change):
  """A copy whose place `at` is what change makes of it; change gives a list of none or one."""
  holder = {'root': copy.deepcopy(document)}
  node, key = holder, 'root'
  for step in at:
    node, key = node[key], step
  new = change(node[key])
  if new:
    node[key] = new[0]
  else:
    del node[key]
  return holder.get('root')


def nest(value, levels):
  for _ in range(levels):
    value = [value]
  return value


def wrong_documents(document):
  for at in paths_in(document):
    for value in VALUES:
      yield changed(document, at, lambda _, value=value: [value])
    yield changed(document, at, lambda old: [nest(old, 40)])
    if at:
      yield changed(document, at, lambda _: [])
    yield changed(document, at, lambda old: [old * 300] if isinstance(old, (list, str)) else [[old]])
    yield changed(document, at,
                  lambda old: [dict(old, later=1)] if isinstance(old, dict) else [{'mode': old}])


def example_of(contract, parameter):
  if 'example' in parameter:
    return [str(parameter['example'])]
  return [str(e['value']) for e in parameter.get('examples', {}).values()] or ['0']


def fill(contract, path, operation):
  """The paths of an operation's own examples."""
  filled = [path]
  for parameter in operation.get('parameters', []):
    parameter = contract.resolve(parameter)
    if parameter['in'] == 'path':
      name = '{' + parameter['name'] + '}'
      filled = [p.replace(name, v) for p in filled for v in example_of(contract, parameter)]
    elif parameter['in'] == 'query':
      filled += [f'{path}?{parameter["name"]}={v}' for v in example_of(contract, parameter)
                 if '{' not in path]
  return filled


def is_measuring(path, method):
  return method == 'post' and '/devices/' in path


def request(method, path, headers=(), body=None):
  return {'method': method.upper(), 'path': path, 'headers': list(headers), 'body': body}


class Corpus:
  def __init__(self, contract):
    self.contract = contract
    self.random = random.Random(31)

  def headers(self, path, method):
    """No request may wait for a measurement: what is asked is whether it is refused well."""
    found = ['Content-Type: application/json'] if method == 'post' else []
    return found + (['Prefer: respond-async'] if is_measuring(path, method) else [])

  def some(self, candidates, most):
    candidates = list(candidates)
    return self.random.sample(candidates, min(most, len(candidates)))

  def bodies_of(self, operation):
    content = operation.get('requestBody', {}).get('content', {}).get('application/json', {})
    return [e['value'] for e in content.get('examples', {}).values()]

  def of_bodies(self, path, filled, method, operation):
    headers = self.headers(path, method)
    examples = self.bodies_of(operation)
    for body in BODIES if examples else ():
      yield request(method, filled[-1], headers, body)
    wrong = {json.dumps(d): None for e in examples for d in wrong_documents(e)}
    for body in self.some(wrong, 130):
      yield request(method, filled[-1], headers, body)
    for kind in TYPES if examples else ():
      # curl takes a header with nothing behind the colon for one to leave out.
      line = f'Content-Type: {kind}' if kind else 'Content-Type;'
      yield request(method, filled[-1], [line, 'Prefer: respond-async'], json.dumps(examples[0]))

  def of_operation(self, path, method, operation):
    headers = self.headers(path, method)
    filled = fill(self.contract, path, operation)
    bodies = [json.dumps(e) for e in self.bodies_of(operation)] or [None]
    for one in filled:
      for body in bodies:
        yield request(method, one, headers, body)
    parts = path.split('/')
    for at in [i for i, part in enumerate(parts) if part.startswith('{')]:
      for segment in self.some(SEGMENTS, 30):
        own = filled[-1].split('?')[0].split('/')
        yield request(method, '/'.join(own[:at] + [segment] + own[at + 1:]), headers, bodies[0])
    for query in self.some(QUERIES, 5):
      yield request(method, filled[-1] + query, headers, bodies[0])
    for header in self.some(HEADERS, 8):
      yield request(method, filled[-1], headers + [header], bodies[0])
    for other in ('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'BREW'):
      if other.lower() != method:
        yield request(other, filled[-1], headers, '{}' if other in ('POST', 'PUT', 'PATCH') else None)
    yield from self.of_bodies(path, filled, method, operation)

  def all(self):
    valid, seen = [], set()
    for path, method, operation in self.contract.operations():
      valid += self.of_operation(path, method, operation)
    valid += [request('GET', path) for path in PATHS]
    unique = []
    for one in valid:
      text = json.dumps(one, sort_keys=True)
      if text not in seen:
        seen.add(text)
        unique.append(one)
    if len(unique) <= CORPUS_MOST:
      return unique
    keep = sorted(self.random.sample(range(len(unique)), CORPUS_MOST))
    return [unique[i] for i in keep]


def main(arguments):
  if arguments[:1] == ['-h'] or arguments[:1] == ['--help']:
    print(__doc__)
    return 0
  try:
    contract = Contract()
  except yaml.YAMLError as error:
    print(f'check_openapi: api/openapi.yaml is no YAML: {error}', file=sys.stderr)
    return 1
  if arguments == ['--corpus']:
    for one in Corpus(contract).all():
      print(json.dumps(one))
    return 0
  if any(a.startswith('-') for a in arguments):
    print(__doc__, file=sys.stderr)
    return 2
  faults = Faults()
  check_document(contract, faults)
  for file in arguments:
    check_exchanges(contract, file, faults)
  if faults.count:
    print(f'check_openapi: {faults.count} faults', file=sys.stderr)
  return 1 if faults.count else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
