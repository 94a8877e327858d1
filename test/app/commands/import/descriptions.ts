/** The transport of most packages. */
export const stdio = { type: 'stdio' };

/** A package of npm. */
export const npmPackage = {
  registryType: 'npm',
  identifier: '@harbour/tides-mcp',
  version: '2.4.0',
  transport: stdio,
};

/** A description of the MCP registry with the given packages and remotes. */
export const described = (parts: object): object => ({
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.github.harbour/tides',
  description: 'Times of high and low water',
  title: 'Tides',
  version: '2.4.0',
  repository: { url: 'https://github.com/harbour/tides', source: 'github' },
  ...parts,
});
