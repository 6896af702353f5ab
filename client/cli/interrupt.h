/*
 * Ctrl-C while something is measured: remembered, so that the measurement is cancelled in order.
 */
#ifndef DEVGATE_CLIENT_CLI_INTERRUPT_H
#define DEVGATE_CLIENT_CLI_INTERRUPT_H

/** Remember SIGINT and SIGTERM from now on; a second one ends the process as usual. */
void dg__interrupt_watch(void);

/** The signal that came; 0 where none did. */
int dg__interrupt_signal(void);

#endif
