import type { LoggerProvider } from '@opentelemetry/sdk-logs';

/** Sends a log record. */
export type EmitRecord = ReturnType<LoggerProvider['getLogger']>['emit'];

/** The numbers of OpenTelemetry for the levels of the log (OpenTelemetry, "Logs Data Model", "SeverityNumber"). */
const severities: Readonly<Record<string, number>> = { trace: 1, debug: 5, info: 9, warn: 13, error: 17, fatal: 21 };

/**
 * Sends lines of the log. The message is the body of the record, and the other fields are attributes with the names of
 * docs/logs.md.
 */
export const lineRecord =
  (emit: EmitRecord) =>
  (line: string): void => {
    const { level, time, msg, ...fields } = JSON.parse(line);
    emit({
      timestamp: new Date(time),
      severityNumber: severities[level] ?? 0,
      severityText: level,
      body: msg,
      attributes: fields,
    });
  };

/** Sends records of the audit log. Their fields are attributes with the names of docs/audit.md. */
export const auditRecord =
  (emit: EmitRecord) =>
  (record: string): void => {
    const { time, ...fields } = JSON.parse(record);
    emit({
      timestamp: new Date(time),
      eventName: 'mcp_gangway.audit',
      severityNumber: 9,
      severityText: 'info',
      attributes: fields,
    });
  };
