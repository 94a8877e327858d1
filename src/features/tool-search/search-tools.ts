/** The tool with which clients search. */
export const findTool = 'find_tools';
/** The tool through which clients call what they have found. */
export const callTool = 'call_tool';

/** How many tools an answer has. */
export const usualTools = 5;
export const mostTools = 20;

/** The names of more servers are left out of a description. */
const maxNamed = 30;

/** The two tools that clients of a view with a search see, as JSON text. */
export function searchToolsText(servers: readonly string[]): string {
  const more = servers.length > maxNamed ? ', …' : '';
  const names = servers.slice(0, maxNamed).join(', ') + more;
  return JSON.stringify([
    {
      name: findTool,
      title: 'Find tools',
      description: `Finds tools by what they do, and returns the best matches with their names and input schemas. The tools are from these servers: ${names}. Use ${callTool} to call one.`,
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string', description: 'What the tool should do, in a few words, such as "create an issue"' },
          limit: { type: 'integer', minimum: 1, maximum: mostTools, default: usualTools },
        },
        required: ['query'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: callTool,
      title: 'Call a tool',
      description: `Calls a tool that ${findTool} has found. The arguments must fit its input schema.`,
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: `The name of the tool, as ${findTool} returns it` },
          arguments: { type: 'object', description: 'The arguments of the tool', additionalProperties: true },
        },
        required: ['name'],
      },
    },
  ]);
}
