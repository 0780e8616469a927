"""Cavity flow: functions that write into the arrays they are given."""

import numpy


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
    )
    return b


def pressure_poisson(p, dx, dy, b, nit):
    pn = numpy.empty_like(p)
    pn = p.copy()
    for _q in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[-1, :] = 0
    return p


def cavity_flow(nt, nit, u, v, dt, dx, dy, p, rho, nu):
    un = numpy.empty_like(u)
    b = numpy.zeros(u.shape)
    for _n in range(nt):
        un = u.copy()
        b = build_up_b(b, rho, dt, u, v, dx, dy)
        p = pressure_poisson(p, dx, dy, b, nit)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
        )
        u[-1, :] = 1
    return u, v, p


def run(nu, n=8):
    dx = dy = 2 / (n - 1)
    u, v, p = numpy.zeros((n, n)), numpy.zeros((n, n)), numpy.zeros((n, n))
    u, v, p = cavity_flow(6, 3, u, v, 0.01, dx, dy, p, 1.0, nu)
    return numpy.sum(u**2) + p.sum()
