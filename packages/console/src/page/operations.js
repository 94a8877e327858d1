/**
 * The operations that a server offers to a person. Each is a request with a form: `read` turns the values of the form
 * into the parameters of the request.
 * @typedef {{ name: string, title: string | undefined, description: string, hints: readonly string[], verb: string,
 *   method: string, schema: object, isDestructive?: boolean, read(values: object): object }} Operation
 *   `isDestructive` is a claim of the server
 */

/** The kinds of operations, with the capability that a server declares for each. */
export const operationKinds = [
  { title: 'Tools', capability: 'tools', list: listTools },
  { title: 'Prompts', capability: 'prompts', list: listPrompts },
  { title: 'Resources', capability: 'resources', list: listResources },
];

async function listTools(client) {
  const tools = await client.list('tools/list', 'tools');
  return tools.map(({ name, title, description, annotations = {}, inputSchema }) => ({
    name,
    title: title ?? annotations.title,
    description: description ?? '',
    hints: hintsOf(annotations),
    isDestructive: isDestructive(annotations),
    verb: 'Call',
    method: 'tools/call',
    schema: inputSchema,
    read: (values) => ({ name, arguments: values }),
  }));
}

const isDestructive = ({ readOnlyHint, destructiveHint }) => readOnlyHint !== true && destructiveHint === true;

/** The annotations of a tool in words (2025-11-25, ToolAnnotations). They are claims of the server. */
const hintsOf = ({ readOnlyHint, idempotentHint, openWorldHint, ...others }) => [
  ...(readOnlyHint === true ? ['read-only'] : []),
  ...(isDestructive({ readOnlyHint, ...others }) ? ['destructive'] : []),
  ...(idempotentHint === true ? ['idempotent'] : []),
  ...(openWorldHint === true ? ['open world'] : []),
];

async function listPrompts(client) {
  const prompts = await client.list('prompts/list', 'prompts');
  return prompts.map(({ name, title, description, arguments: parameters = [] }) => ({
    ...{ name, title, description: description ?? '', hints: [], verb: 'Get', method: 'prompts/get' },
    schema: textSchema(parameters),
    read: (values) => ({ name, arguments: values }),
  }));
}

/** Lists the resources, and the templates with a form for their variables. */
async function listResources(client) {
  const resources = await client.list('resources/list', 'resources');
  const templates = await client.list('resources/templates/list', 'resourceTemplates').catch(() => []);
  return [
    ...resources.map(({ uri, name, title, description, mimeType }) => ({
      ...readResource({ uri, name, title, description, mimeType }),
      schema: textSchema([]),
      read: () => ({ uri }),
    })),
    ...templates.map(({ uriTemplate, ...others }) => ({
      ...readResource({ uri: uriTemplate, ...others }),
      schema: textSchema(variablesOf(uriTemplate).map((variable) => ({ name: variable, required: true }))),
      read: (values) => ({ uri: expand(uriTemplate, values) }),
    })),
  ];
}

const readResource = ({ uri, name, title, description, mimeType }) => ({
  name: uri,
  title: title ?? name,
  description: description ?? '',
  hints: mimeType === undefined ? [] : [mimeType],
  verb: 'Read',
  method: 'resources/read',
});

/** Returns the JSON schema of named texts. */
const textSchema = (parameters) => ({
  type: 'object',
  required: parameters.filter(({ required }) => required).map(({ name }) => name),
  properties: Object.fromEntries(
    parameters.map(({ name, title, description }) => [name, { type: 'string', title, description }]),
  ),
});

/** An expression of a URI template (RFC 6570): an operator, and variables with modifiers. */
const expression = /\{([+#./;?&]?)([^{}]+)\}/g;

const variablesOf = (template) => [
  ...new Set([...template.matchAll(expression)].flatMap(([, , names]) => names.split(',').map(variableName))),
];

const variableName = (text) => text.replace(/[*:].*$/, '');

/** Expands a URI template with texts (RFC 6570, levels 1 to 3). */
function expand(template, values) {
  return template.replace(expression, (_, operator, names) => {
    const isNamed = ';?&'.includes(operator) && operator !== '';
    const encode = '+#'.includes(operator) && operator !== '' ? encodeURI : encodeURIComponent;
    const parts = names
      .split(',')
      .map(variableName)
      .filter((name) => values[name] !== undefined)
      .map((name) => (isNamed ? `${name}=${encode(values[name])}` : encode(values[name])));
    if (parts.length === 0) return '';
    const separator = { '.': '.', '/': '/', ';': ';', '?': '&', '&': '&' }[operator] ?? ',';
    return (operator === '+' ? '' : operator) + parts.join(separator);
  });
}
