/*
 * The script of a fake worker: lines of word=value, separated by ';' or line ends. They are in
 * DG_FAKE itself or, where it is @PATH, in that file; with no DG_FAKE in the file that DG_FAKE_FILE
 * names. A file may be replaced while the worker runs: it is read anew at each call of a slot.
 *
 * [cuda]           What follows is for the worker of that backend alone.
 * []               What follows is for all again, as it is at the start.
 *
 * gpus=A,b,C<A     The hardware, in the driver's present order. A letter is one piece of hardware
 *                  and gives its UUID and PCI address; a small one is a software adapter; C<A is a
 *                  part of A. Default A; none where empty.
 * variant=vulkan   What the devices are; default the backend's own name, else cuda.
 * kind=integrated  Kind of adapter, as in a device's text: of the wgpu family's hardware; default
 *                  discrete. Software adapters are of kind cpu whatever it says.
 * name=TEXT        Name of all devices; default "Fake" and the letter.
 * driver=TEXT      Name and version of the driver.
 * enumerate=missing|failed
 * init_ms=N        enumerate() takes so long.
 * launch_ms=N      Each launch takes so long.
 * lost=A,B         These are described, but gone as soon as they are opened or asked.
 * output=wrong|short|lazy
 * ignore_term=1    SIGTERM does nothing.
 * log=PATH         A line "PID SLOT" is added for each call into the backend.
 * do=ACTION@SLOT   Up to 8 times; ACTION@SLOT+N spares the first N calls of the slot.
 *
 * Slots: main (before hosting), enumerate, describe, telemetry, open, buffer, kernel, launch,
 * observe.
 *
 * Actions: hang, spin, wait (until told to stop; launch and buffer only), segv, abort, exit:STATUS,
 * eat (all memory that can be had), stop (as SIGSTOP does), print (much, to both outputs), fail,
 * lose, close (the socket, and hang), and what is sent past the host: bytes (garbage), json (a
 * frame of garbage), oversize (a frame that claims 4 GiB), cut (half a frame, and exit), drip (a
 * frame byte by byte for ever), say:TEXT (a frame of this text), then:TEXT (the same, and hang),
 * flood:TEXT (the same without end).
 */
#ifndef DEVGATE_TESTS_FAKES_FAKE_SCRIPT_H
#define DEVGATE_TESTS_FAKES_FAKE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#define DG__FAKE_GPUS_MAX 8
#define DG__FAKE_ACTS_MAX 8

typedef struct dg__fake_gpu {
	char letter; /* 'A'..'Z' */
	char parent; /* likewise; '\0': none */
	bool software;
} dg__fake_gpu;

typedef struct dg__fake_act {
	char action[512];
	char slot[16];
	unsigned long after;
} dg__fake_act;

typedef struct dg__fake_script {
	size_t gpu_count;
	dg__fake_gpu gpus[DG__FAKE_GPUS_MAX];
	char variant[16], kind[16], name[64], driver[64], enumerate[16], lost[32], output[16],
		log[256];
	unsigned long init_ms, launch_ms;
	bool ignore_term;
	size_t act_count;
	dg__fake_act acts[DG__FAKE_ACTS_MAX];
} dg__fake_script;

/** Read the script as it is now, for a backend. A malformed line, also of another backend's part,
 * ends the process: no test passes by it. */
void dg__fake_script_read(const char *backend, dg__fake_script *ret_script);

#endif
