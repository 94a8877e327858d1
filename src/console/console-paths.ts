/** True for what is of the status page. */
export const isStatusPath = (path: string): boolean => path === '/' || /^\/(?:page|status)\//.test(path);
