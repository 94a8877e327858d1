/** True for a path of the status page. */
export const isConsolePath = (path: string): boolean => path === '/' || /^\/(?:page|status)\//.test(path);
